// A file of its own: whenever the interface changes, only this one is compiled again.
#include "bindings/bindings.hpp"

const char* interface_digest() {
    return ADASDCA_INTERFACE;
}
