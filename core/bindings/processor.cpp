// A module for every processor: it tells which of the others may be imported.
#include "system/processor.hpp"

#include <nanobind/nanobind.h>

NB_MODULE(_processor, m) {
    m.def("supported_level", &adasdca::supported_level,
          "The x86-64 level of this processor; 0 elsewhere.");
}
