#include "runtime/graph/wire.h"

void tfc_wire_put_varint(struct tfc_text *out, uint64_t value) {
  char bytes[10];
  size_t n = 0;
  while (value >= 0x80) {
    bytes[n++] = (char)(value | 0x80);
    value >>= 7;
  }
  bytes[n++] = (char)value;
  tfc_text_add(out, (tfc_str){bytes, n});
}

void tfc_wire_put_int(struct tfc_text *out, uint32_t number, uint64_t value) {
  tfc_wire_put_varint(out, (uint64_t)number << 3 | TFC_WIRE_VARINT);
  tfc_wire_put_varint(out, value);
}

void tfc_wire_put_float(struct tfc_text *out, uint32_t number, float value) {
  union {
    float f;
    uint32_t u;
  } x = {value};
  char bytes[4] = {(char)x.u, (char)(x.u >> 8), (char)(x.u >> 16), (char)(x.u >> 24)};
  tfc_wire_put_varint(out, (uint64_t)number << 3 | TFC_WIRE_32);
  tfc_text_add(out, (tfc_str){bytes, 4});
}

void tfc_wire_put_bytes(struct tfc_text *out, uint32_t number, tfc_str bytes) {
  tfc_wire_put_varint(out, (uint64_t)number << 3 | TFC_WIRE_BYTES);
  tfc_wire_put_varint(out, bytes.size);
  tfc_text_add(out, bytes);
}
