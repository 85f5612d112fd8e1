import { compareWithDateutil } from './compare.ts'

/**
 * `npm run check:rrule [rules] [seed]`: compares random rules with dateutil. Without a seed, a random one is used and
 * printed.
 */
const rules = Number(process.argv[2] ?? 100_000)
const first = Number(process.argv[3] ?? Math.floor(Math.random() * 1_000_000))
const CHUNK = 1_000
const began = Date.now()
let different = 0
let [occurrences, tooSlow] = [0, 0]
for (let done = 0; done < rules; done += CHUNK) {
  const seed = first + done / CHUNK
  const result = await compareWithDateutil(seed, Math.min(CHUNK, rules - done))
  different += result.differences.length
  occurrences += result.occurrences
  tooSlow += result.tooSlow
  for (const difference of result.differences.slice(0, 5)) console.log(difference)
  if ((done / CHUNK) % 10 === 9) console.log(`${done + CHUNK} rules, ${different} differences`)
}
const seconds = Math.round((Date.now() - began) / 1_000)
console.log(
  `Seed ${first}: ${rules} rules, ${occurrences} occurrences, ${different} differences, ` +
    `${tooSlow} too slow for dateutil, ${seconds} s.`,
)
process.exitCode = different === 0 ? 0 : 1
