// How text holds edges.
#pragma once

#include <string>

namespace ohm {

struct TextLayout {
  char delimiter = ',';       // 0: runs of blanks and tabs
  bool quotes = true;         // fields may be enclosed in double quotes
  std::string comments = "";  // lines that start with one of these characters are comments
  int u = 0;                  // columns, from 0
  int v = 1;
  int w = -1;                 // -1: no weights
  int t = -1;                 // -1: no times
  int event = -1;             // column of the ids of events; -1: none
  bool dates = false;         // times are dates, else numbers
  bool strings = false;       // ids are strings, else integers
  bool whole_u = false;       // strings of a column are whole numbers, of which some are written as 17.0
  bool whole_v = false;
  bool empty_v = false;       // the second id may be an empty string, and an empty weight is 1
  bool skips_faults = false;  // otherwise reading stops at the first fault
  bool decimal_comma = false;  // weights are written as 0,5
  int n_fields = 0;           // of each record; 0: any number. Empty fields may follow
  bool attributes = false;    // the third field is a dict of Python, as networkx writes it, which may have a weight
};

}  // namespace ohm
