// Ids of nodes, and edges in text, in ohmlearn._core.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <optional>
#include <string>
#include <tuple>

#include "bindings/arrays.hpp"
#include "graph/edges.hpp"
#include "text/edge_text.hpp"
#include "text/node_types.hpp"
#include "text/nodes.hpp"
#include "text/recent_ids.hpp"
#include "text/times.hpp"

namespace ohm::python {
namespace {

// ---- nodes --------------------------------------------------------------------------------------

// An array of `size` numbers that `fill` writes.
template <class Fill>
ArrayOut<std::int32_t> numbers(std::size_t size, const Fill& fill) {
  auto to = uninitialised<std::int32_t>(static_cast<std::int64_t>(size));
  without_gil([&] { fill(to.data()); });
  return read_only(to);
}

template <class Fill>
auto pairs_of_numbers(std::size_t size, const Fill& fill) {
  auto u = uninitialised<std::int32_t>(static_cast<std::int64_t>(size));
  auto v = uninitialised<std::int32_t>(static_cast<std::int64_t>(size));
  without_gil([&] { fill(u.data(), v.data()); });
  return std::tuple(read_only(u), read_only(v));
}

using Offsets = ArrayIn<std::int64_t>;
using Bytes = ArrayIn<std::uint8_t>;

// Offsets may come from a corrupt file.
Strings as_strings(const Offsets& offset, const Bytes& data) {
  require(offset.size() > 0, "offsets must have one entry more than there are strings");
  std::int64_t last = 0;
  for (std::size_t i = 0; i < offset.size(); ++i) {
    require(offset.data()[i] >= last, "offsets must not decrease");
    last = offset.data()[i];
  }
  require(static_cast<std::uint64_t>(last) <= data.size(), "offsets exceed the length of the strings");
  return {as_span(offset), reinterpret_cast<const char*>(data.data())};
}

ArrayOut<std::uint8_t> as_bytes(std::span<const char> data) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(data.data());
  return to_numpy(std::vector<std::uint8_t>(from, from + data.size()));
}

// The first `size` values of an array.
template <class T>
ArrayOut<T> take_over(std::unique_ptr<T[]> values, std::int64_t size) {
  T* const begin = values.release();
  const nb::capsule owner(begin, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return read_only(ArrayInOut<T>(begin, {static_cast<std::size_t>(size)}, owner));
}

auto to_arrays(OwnedStrings&& strings) {
  const std::int64_t length = strings.offset[strings.size];
  return std::tuple(take_over(std::move(strings.offset), strings.size + 1),
                    take_over(std::move(strings.data), length));
}

std::span<const std::int64_t> check_numbers(const ArrayIn<std::int64_t>& chosen, std::int64_t n_ids) {
  for (const std::int64_t at : as_span(chosen)) require(0 <= at && at < n_ids, "no such id");
  return as_span(chosen);
}

void bind_nodes(nb::module_& m) {
  nb::register_exception_translator([](const std::exception_ptr& error, void*) {
    try {
      std::rethrow_exception(error);
    } catch (const TooManyNodes&) {
      PyErr_SetString(PyExc_OverflowError, "more than 2**31 - 1 different node ids");
    }
  });
  nb::class_<IntegerNodes>(m, "IntegerNodes", "Numbers integers in the order of first appearance.")
      .def(nb::init<>())
      .def("__len__", &IntegerNodes::size)
      .def("add_edges", [](IntegerNodes& self, ArrayIn<std::int64_t> u, ArrayIn<std::int64_t> v) {
        require(u.size() == v.size(), "u and v must have the same length");
        return pairs_of_numbers(u.size(), [&](auto* a, auto* b) { self.add_edges(as_span(u), as_span(v), a, b); });
      }, "u"_a.noconvert(), "v"_a.noconvert())
      .def("add", [](IntegerNodes& self, ArrayIn<std::int64_t> ids) {
        return numbers(ids.size(), [&](auto* to) { self.add(as_span(ids), to); });
      }, "ids"_a.noconvert())
      .def("find_into", [](const IntegerNodes& self, ArrayIn<std::int64_t> ids, ArrayInOut<std::int32_t> to) {
        require(to.size() == ids.size(), "the arrays must have the same size");
        without_gil([&] { self.find(as_span(ids), to.data()); });
      }, "ids"_a.noconvert(), "to"_a.noconvert())
      .def("keys", [](const IntegerNodes& self) {
        return to_numpy(std::vector<std::int64_t>(self.keys().begin(), self.keys().end()));
      })
      .def("take", [](const IntegerNodes& self, ArrayIn<std::int64_t> chosen) {
        std::vector<std::int64_t> ids;
        ids.reserve(chosen.size());
        for (const std::int64_t at : check_numbers(chosen, self.size())) ids.push_back(self.keys()[at]);
        return to_numpy(std::move(ids));
      }, "chosen"_a.noconvert());
  nb::class_<StringNodes>(m, "StringNodes", "Numbers strings in the order of first appearance.")
      .def(nb::init<>())
      .def("__len__", &StringNodes::size)
      .def("add_edges", [](StringNodes& self, Offsets u, Bytes u_data, Offsets v, Bytes v_data) {
        require(u.size() == v.size(), "u and v must have the same length");
        const auto a = as_strings(u, u_data);
        const auto b = as_strings(v, v_data);
        return pairs_of_numbers(u.size() - 1, [&](auto* to_u, auto* to_v) { self.add_edges(a, b, to_u, to_v); });
      }, "u"_a.noconvert(), "u_data"_a.noconvert(), "v"_a.noconvert(), "v_data"_a.noconvert())
      .def("add", [](StringNodes& self, Offsets offsets, Bytes data) {
        const auto ids = as_strings(offsets, data);
        return numbers(offsets.size() - 1, [&](auto* to) { self.add(ids, to); });
      }, "offsets"_a.noconvert(), "data"_a.noconvert())
      .def("find_into", [](const StringNodes& self, Offsets offsets, Bytes data, ArrayInOut<std::int32_t> to) {
        const auto ids = as_strings(offsets, data);
        require(static_cast<std::int64_t>(to.size()) == ids.size(), "the arrays must have the same size");
        without_gil([&] { self.find(ids, to.data()); });
      }, "offsets"_a.noconvert(), "data"_a.noconvert(), "to"_a.noconvert())
      .def("keys", [](const StringNodes& self) {
        const auto offset = self.keys().offset;
        return std::tuple(to_numpy(std::vector<std::int64_t>(offset.begin(), offset.end())), as_bytes(self.bytes()));
      })
      .def("take", [](const StringNodes& self, ArrayIn<std::int64_t> chosen) {
        const auto numbers = check_numbers(chosen, self.size());
        return to_arrays(without_gil([&] { return take_strings(self.keys(), numbers); }));
      }, "chosen"_a.noconvert());
  m.def("with_prefix", [](Offsets offsets, Bytes data, const std::string& prefix) {
     const auto ids = as_strings(offsets, data);
     return to_arrays(without_gil([&] { return with_prefix(ids, prefix); }));
   }, "offsets"_a.noconvert(), "data"_a.noconvert(), "prefix"_a);
  m.def("take_strings", [](Offsets offsets, Bytes data, ArrayIn<std::int64_t> positions) {
     const auto ids = as_strings(offsets, data);
     const auto at = check_numbers(positions, ids.size());
     return to_arrays(without_gil([&] { return take_strings(ids, at); }));
   }, "offsets"_a.noconvert(), "data"_a.noconvert(), "positions"_a.noconvert());
  m.def("find_without_prefix", [](Offsets offsets, Bytes data, const std::vector<std::string>& prefixes) {
     const auto ids = as_strings(offsets, data);
     return without_gil([&] { return find_without_prefix(ids, prefixes); });
   }, "offsets"_a.noconvert(), "data"_a.noconvert(), "prefixes"_a);
  m.def("kinds_of", [](Offsets offsets, Bytes data) {
     const auto ids = as_strings(offsets, data);
     return without_gil([&] { return node_types_of(ids); });
   }, "offsets"_a.noconvert(), "data"_a.noconvert());
  m.def("with_prefix", [](ArrayIn<std::int64_t> ids, const std::string& prefix) {
    return to_arrays(without_gil([&] { return with_prefix(as_span(ids), prefix); }));
  }, "ids"_a.noconvert(), "prefix"_a, "Ids with a node type in front, as strings; see node_types.hpp.");
}

// ---- text ---------------------------------------------------------------------------------------

std::string_view as_text(const Bytes& text) { return {reinterpret_cast<const char*>(text.data()), text.size()}; }
std::string_view as_text(const nb::bytes& text) { return {text.c_str(), text.size()}; }

// (u, v, w, t) for integers, (u offsets, u bytes, v offsets, v bytes, w, t) for strings.
nb::typed<nb::tuple, nb::object, nb::ellipsis> parse_text(EdgeText& self, Bytes text, bool strings, bool last) {
  require(text.size() == 0 || as_text(text).back() == '\n', "text must end with a newline");
  TextEdges edges = without_gil([&] { return self.parse(as_text(text), last); });
  auto w = to_numpy(std::move(edges.w));
  auto t = to_numpy(std::move(edges.t));
  if (!strings) return nb::make_tuple(to_numpy(std::move(edges.u)), to_numpy(std::move(edges.v)), w, t);
  return nb::make_tuple(to_numpy(std::move(edges.u_offset)), as_bytes(edges.u_data),
                        to_numpy(std::move(edges.v_offset)), as_bytes(edges.v_data), w, t);
}

void bind_events(nb::module_& m) {
  m.def("hash_texts", [](Offsets offsets, Bytes data) {
    const auto texts = as_strings(offsets, data);
    return to_numpy(without_gil([&] {
      std::vector<std::uint64_t> hashes(texts.offset.size() - 1);
      for (std::size_t i = 0; i < hashes.size(); ++i) hashes[i] = hash_text(texts[i]);
      return hashes;
    }));
  }, "offsets"_a.noconvert(), "data"_a.noconvert(), "Hashes of the ids of events; never 0.");
  nb::class_<RecentIds>(m, "RecentIds", "The last ids of events; see recent_ids.hpp.")
      .def(nb::init<std::size_t>(), "capacity"_a)
      .def("take", [](RecentIds& self, ArrayIn<std::uint64_t> ids) {
        const auto every = as_span(ids);
        require(std::find(every.begin(), every.end(), 0u) == every.end(), "a hash must not be 0");
        return to_numpy(without_gil([&] { return self.take(every); }));
      }, "ids"_a.noconvert(), "Whether each id is new; remembers it.")
      .def("ids", [](const RecentIds& self) { return to_numpy(self.ids()); }, "From the oldest to the newest.");
}

void bind_parser(nb::module_& m) {
  bind_events(m);
  m.attr("SMALLEST_WEIGHT") = kSmallestWeight;
  m.attr("LARGEST_WEIGHT") = kLargestWeight;
  m.attr("LARGEST_TIME") = kLargestTime;
  nb::class_<TextLayout>(m, "TextLayout", "How text holds edges; see edge_text.hpp.")
      .def(nb::init<>())
      .def_prop_rw("delimiter", [](const TextLayout& self) { return std::string(self.delimiter != 0, self.delimiter); },
                   [](TextLayout& self, const std::string& value) { self.delimiter = value.empty() ? '\0' : value[0]; })
      .def_rw("quotes", &TextLayout::quotes)
      .def_rw("comments", &TextLayout::comments)
      .def_rw("u", &TextLayout::u)
      .def_rw("v", &TextLayout::v)
      .def_rw("w", &TextLayout::w)
      .def_rw("t", &TextLayout::t)
      .def_rw("event", &TextLayout::event)
      .def_rw("dates", &TextLayout::dates)
      .def_rw("strings", &TextLayout::strings)
      .def_rw("whole_u", &TextLayout::whole_u)
      .def_rw("whole_v", &TextLayout::whole_v)
      .def_rw("empty_v", &TextLayout::empty_v)
      .def_rw("skips_faults", &TextLayout::skips_faults)
      .def_rw("n_fields", &TextLayout::n_fields)
      .def_rw("attributes", &TextLayout::attributes)
      .def_rw("decimal_comma", &TextLayout::decimal_comma);
  nb::class_<LineFault> fault(m, "LineFault");
  nb::enum_<LineFault::Reason>(fault, "Kind")
      .value("columns", LineFault::Reason::columns)
      .value("quote", LineFault::Reason::quote)
      .value("integer", LineFault::Reason::integer)
      .value("utf8", LineFault::Reason::utf8)
      .value("empty_id", LineFault::Reason::empty_id)
      .value("number", LineFault::Reason::number)
      .value("weight", LineFault::Reason::weight)
      .value("time", LineFault::Reason::time)
      .value("late", LineFault::Reason::late)
      .value("carriage_return", LineFault::Reason::carriage_return)
      .value("ragged", LineFault::Reason::ragged);
  fault.def_ro("kind", &LineFault::reason)
      .def_ro("line", &LineFault::line)
      .def_ro("column", &LineFault::column)
      .def_prop_ro("text", [](const LineFault& self) { return nb::bytes(self.text.data(), self.text.size()); });
  nb::class_<EdgeText>(m, "EdgeText", "Reads whole lines.")
      .def(nb::init<TextLayout, std::int64_t>(), "layout"_a, "line"_a)
      .def("parse", parse_text, "text"_a.noconvert(), "strings"_a, "last"_a)
      .def("take_events", [](EdgeText& self) { return to_numpy(self.take_events()); },
           "Hashes of the ids of events in the latest text.")
      .def_prop_rw("latest", &EdgeText::latest, &EdgeText::set_latest, "Later times are faults.")
      .def_prop_ro("n_consumed", &EdgeText::n_consumed)
      .def_prop_ro("n_faults", &EdgeText::n_faults)
      .def_prop_ro("first_fault", [](const EdgeText& self) { return self.first_fault(); });
  m.def("split_line", [](nb::bytes line, const TextLayout& layout) -> std::optional<std::vector<nb::bytes>> {
    const auto fields = split_line(as_text(line), layout);
    if (!fields) return std::nullopt;
    std::vector<nb::bytes> result;
    for (const std::string& field : *fields) result.emplace_back(field.data(), field.size());
    return result;
  }, "line"_a, "layout"_a);
  m.def("take_fields", [](Bytes text, const TextLayout& layout, std::vector<int> columns,
                          bool last) -> nb::typed<nb::tuple, nb::object, nb::ellipsis> {
    const std::string_view whole = as_text(text);
    require(whole.empty() || whole.back() == '\n', "text must end with a newline");
    for (const int column : columns) require(column >= 0 && column < 1'000'000, "columns are counted from 0");
    auto found = without_gil([&] { return take_fields(whole, layout, columns, last); });
    nb::list fields;
    for (std::size_t k = 0; k < columns.size(); ++k) {
      fields.append(nb::make_tuple(to_numpy(std::move(found.offset[k])), as_bytes(found.data[k])));
    }
    return nb::make_tuple(to_numpy(std::move(found.start)), to_numpy(std::move(found.end)),
                          to_numpy(std::move(found.line)), fields, found.first_fault, found.n_consumed);
  }, "text"_a.noconvert(), "layout"_a, "columns"_a, "last"_a,
     "Starts, ends and first lines of records, their fields in some columns as (offsets, bytes), the first fault, and the "
     "number of bytes read.");
  m.def("first_record", [](nb::bytes text, std::size_t start, const TextLayout& layout, bool last) {
    const std::string_view whole = as_text(text);
    require(start < whole.size() && whole.back() == '\n', "text must end with a newline");
    const Record record = RecordFinder().find(whole, start, layout, last);
    return std::tuple(nb::bytes(record.content.data(), record.content.size()), start + record.size, record.is_empty,
                      record.has_stray_return);
  }, "text"_a, "start"_a, "layout"_a, "last"_a = true,
     "Content of the record at `start`, where it ends (`start` if more text is needed), is_empty, has_stray_return.");
  m.def("some_records", [](nb::bytes text, std::size_t start, std::size_t stop, std::size_t most,
                           const TextLayout& layout) {
    const std::string_view whole = as_text(text);
    require(stop <= whole.size() && (stop == 0 || whole.back() == '\n'), "text must end with a newline");
    std::vector<nb::bytes> records;
    for (const auto record : some_records(whole, start, stop, most, layout)) {
      records.emplace_back(record.data(), record.size());
    }
    return records;
  }, "text"_a, "start"_a, "stop"_a, "most"_a, "layout"_a, "Contents of some records; see records.hpp.");
  m.def("parse_whole", [](nb::bytes text) -> std::optional<std::int64_t> {
    std::int64_t value;
    return parse_whole(as_text(text), value) ? std::optional(value) : std::nullopt;
  }, "text"_a, "An integer, also if it is written as 17.0; None for any other text.");
  m.def("parse_time", [](nb::bytes text, bool dates) {
    double value;
    return parse_time(as_text(text), dates, value) ? value : std::numeric_limits<double>::quiet_NaN();
  }, "text"_a, "dates"_a, "A date in seconds since 1970, or a number; NaN for any other text.");
  m.def("parse_times", [](Offsets offsets, Bytes data, bool dates) {
    const auto texts = as_strings(offsets, data);
    return to_numpy(without_gil([&] {
      std::vector<double> times(texts.offset.size() - 1, std::numeric_limits<double>::quiet_NaN());
      for (std::size_t i = 0; i < times.size(); ++i) {
        double value;
        if (parse_time(texts[i], dates, value)) times[i] = value;
      }
      return times;
    }));
  }, "offsets"_a.noconvert(), "data"_a.noconvert(), "dates"_a, "As parse_time, of many texts.");
}

}  // namespace

void bind_text(nb::module_& m) {
  bind_nodes(m);
  bind_parser(m);
}

}  // namespace ohm::python
