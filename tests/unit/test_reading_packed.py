"""Small files that decompress to large arrays: .npz archives are read in pieces or refused."""

import io
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import scipy.sparse
from stream_cases import edges

from ohmlearn.reading import SourceError, array_reader, read_edges


def write_bomb(path, names, n_bytes, *, n_claimed=None):
    """Write arrays of zeros, which compress a thousandfold, without having them in memory."""
    header = io.BytesIO()
    count = (n_claimed or n_bytes) // 8
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<i8", "fortran_order": False, "shape": (count,)}
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                file.write(header.getvalue())
                for _ in range(0, n_bytes, 1 << 20):
                    file.write(bytes(1 << 20))


@pytest.mark.slow
def test_memory_does_not_grow_with_what_an_npz_file_holds(tmp_path):
    read = "import sys, ohmlearn\nfrom ohmlearn.report.progress import peak_memory\n"
    read += "n = sum(len(batch.u) for batch in ohmlearn.read_edges(sys.argv[1]))\n"
    read += "print(n, peak_memory())"
    peaks = []
    for n_bytes in (1 << 20, 1 << 27):
        path = tmp_path / f"{n_bytes}.npz"
        write_bomb(path, ["u", "v", "never_read"], n_bytes)
        args = [sys.executable, "-c", read, str(path)]
        found = subprocess.run(args, capture_output=True, text=True, check=True).stdout.split()
        assert int(found[0]) == n_bytes // 8
        peaks.append(int(found[1]))
    assert peaks[1] - peaks[0] < 50_000_000


def test_a_matrix_much_larger_than_its_file_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "m.npz"
    matrix = scipy.sparse.coo_array((np.ones(100_000), (np.zeros((2, 100_000), dtype=int))))
    scipy.sparse.save_npz(path, matrix)
    monkeypatch.setattr(array_reader, "SMALL_MATRIX", 1 << 20)
    message = r"a matrix of \d+ bytes in a file of \d+ bytes is probably damaged.*compressed=False"
    with pytest.raises(SourceError, match=message):
        read_edges(path)
    scipy.sparse.save_npz(path, matrix, compressed=False)
    assert len(edges(read_edges(path))[0]) == 100_000


def test_a_header_that_the_size_contradicts_is_refused(tmp_path):
    path = tmp_path / "e.npz"
    write_bomb(path, ["u", "v"], 1 << 20, n_claimed=1 << 50)
    message = r"'u' should have shape \(140737488355328,\), 1125899906842624 bytes, but there are"
    with pytest.raises(SourceError, match=message):
        read_edges(path)
    write_bomb(path, ["format", "row", "col", "data", "shape"], 1 << 20, n_claimed=1 << 50)
    with pytest.raises(SourceError, match="'format' should have shape"):
        read_edges(path)


def test_a_matrix_of_many_nodes_and_few_edges(tmp_path):
    n = 2**31 - 1  # a row pointer for each node would take 17 GB
    ends = np.array([[0, n - 1, 5, 7], [n - 1, 0, 7, 5]])
    path = tmp_path / "m.npz"
    scipy.sparse.save_npz(path, scipy.sparse.coo_array(([1, 1, 2, 2], ends), shape=(n, n)))
    assert edges(read_edges(path)) == ([0, 5], [n - 1, 7], [1, 2])
    scipy.sparse.save_npz(path, scipy.sparse.coo_array(([1, 1, 2, 3], ends), shape=(n, n)))
    with pytest.raises(SourceError, match="neither symmetric nor triangular"):
        read_edges(path)


def test_wide_strings_come_in_small_batches(tmp_path, monkeypatch):
    path = tmp_path / "e.npz"
    names = np.array([f"{i:0100}" for i in range(1000)])
    np.savez_compressed(path, u=names, v=names[::-1])
    monkeypatch.setattr(array_reader, "BATCH_BYTES", 400 * 64)
    assert [len(batch.u) for batch in read_edges(path)] == [64] * 15 + [40]
    monkeypatch.setattr(array_reader, "BATCH_BYTES", 399)
    with pytest.raises(SourceError, match="values of 400 bytes each are too long"):
        list(read_edges(path))


def test_objects_and_damaged_columns_are_refused(tmp_path):
    path = tmp_path / "e.npz"
    np.savez(path, u=np.array([1, None]), v=[1, 2])
    with pytest.raises(SourceError, match="'u' holds Python objects; save integers or strings"):
        read_edges(path)
    np.savez(path, u=np.arange(1000), v=np.arange(1000))
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    with pytest.raises(SourceError, match=r"cannot be read as columns of edges: Bad CRC-32"):
        list(read_edges(path))
