import { contract } from 'impresario'
import { z } from 'zod'

const file = z.string()

/** What can be done in a small print shop. Task types are `shop.check`, `shop.retouch` and so on. */
export const shop = contract('shop', {
  /** Looks whether a file can be printed. `model` is the colour profile: whoever has it loaded is asked first. */
  check: {
    input: z.object({ file, dpi: z.number(), model: z.string() }),
    output: z.object({ file, dpi: z.number() }),
    outcomes: { too_coarse: z.object({ dpi: z.number(), needed: z.number() }) },
  },
  retouch: {
    input: z.object({ file, dpi: z.number() }),
    output: z.object({ file, dpi: z.number() }),
  },
  /** Counts the paper in the store. */
  count: { input: z.object({}), output: z.object({ paper: z.number() }) },
  /** Prints a single sheet to be looked at. */
  proof: { input: z.object({ file }), output: z.object({ proof: z.string() }) },
  /** Keeps a proof on the rack for an hour, or until it is told to stop. */
  dry: { input: z.object({ proof: z.string() }), output: z.object({ moisture: z.number() }) },
  /** Makes the printing plate of one colour. */
  plate: {
    input: z.object({ file, colour: z.string() }),
    output: z.object({ plate: z.string() }),
  },
  print: {
    input: z.object({ plates: z.array(z.string()), bundle: z.number(), copies: z.number() }),
    output: z.object({ sheets: z.number() }),
  },
  inspect: { input: z.object({ sheet: z.number() }), output: z.object({ good: z.boolean() }) },
  pack: { input: z.object({ title: z.string(), copies: z.number() }), output: z.object({ parcel: z.string() }) },
})
