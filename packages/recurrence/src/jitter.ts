/**
 * A delay from 0 to `maxMs` that spreads runs that would otherwise all start in the same second. The same seed and time
 * give the same delay, so that every process computes the same moment.
 */
export function jitterMs(seed: string, at: number, maxMs: number): number {
  return maxMs <= 0 ? 0 : Math.floor(fraction(`${seed} ${at}`) * (maxMs + 1))
}

/**
 * Uniform from 0 up to 1: FNV-1a over the text, then the finalizer of MurmurHash, because FNV mixes the last characters
 * poorly.
 */
function fraction(text: string): number {
  let hash = 0x81_1c_9d_c5
  for (let index = 0; index < text.length; index += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01_00_01_93)
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85_eb_ca_6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2_b2_ae_35)
  return ((hash ^ (hash >>> 16)) >>> 0) / 4_294_967_296
}
