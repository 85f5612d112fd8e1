/** How many slots a Redis Cluster has. Each primary serves a range of them. */
const SLOTS = 16_384
const POLYNOMIAL = 0x10_21

/** The slot of the keys that have this text between their braces: CRC-16/XMODEM, as the Cluster computes it. */
export function slotOf(text: string): number {
  let crc = 0
  for (const byte of Buffer.from(text)) {
    crc ^= byte << 8
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc & 0x80_00) === 0 ? crc << 1 : (crc << 1) ^ POLYNOMIAL) & 0xff_ff
  }
  return crc % SLOTS
}

/**
 * A name for each of the shards, so that they are spread evenly over the slots and with them over the primaries, however many there
 * are. Names that are simply numbered fall where they fall: of twelve shards on three primaries, six may be on one of them.
 */
export function evenNames(namespace: string, shards: number): readonly string[] {
  return Array.from({ length: shards }, (_, shard) => evenName(`${namespace}/${shard}`, shard, shards))
}

/** The first of `stem`, `stem.1`, `stem.2` … that lies in this shard's part of the slots. */
function evenName(stem: string, shard: number, shards: number): string {
  const [first, end] = [(shard * SLOTS) / shards, ((shard + 1) * SLOTS) / shards]
  const fits = (name: string): boolean => slotOf(name) >= first && slotOf(name) < end
  let name = stem
  for (let attempt = 1; !fits(name); attempt += 1) name = `${stem}.${attempt}`
  return name
}
