// A file of its own: whenever the interface changes, only this one is compiled again.
const char* interface_digest();

const char* interface_digest() {
    return ADASDCA_INTERFACE;
}
