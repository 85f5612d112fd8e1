/**
 * Four hexadecimal digits that follow from a text. An id that ends with the digits of another text lies near what has that
 * text as its id, in a storage that spreads what it keeps: both are then written in one place. The digits of different
 * texts are as good as random.
 */
export function shardSuffix(text: string): string {
  let hash = 0x81_1c_9d_c5
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x1_00_01_93)
  }
  // The low bits of the sum above hardly depend on the first letters; these steps make all bits depend on all others.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85_eb_ca_6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2_b2_ae_35)
  return ((hash ^ (hash >>> 16)) & 0xff_ff).toString(16).padStart(4, '0')
}
