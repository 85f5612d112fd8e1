import { z } from 'zod'
import { LIMITS } from './limits.ts'

export const viewParams = z.object({
  view: z.string().min(1).max(LIMITS.viewNameCharsMax).describe('Name of a saved view.'),
})
const viewSearch = z
  .record(z.string().min(1).max(50), z.string().max(LIMITS.viewValueCharsMax))
  .describe('The filters as the address of the dashboard has them, such as `{"show": "failed", "blueprint": "order"}`.')
export const savedViewRequest = z.strictObject({ search: viewSearch })
export const savedView = z.object({
  name: z.string(),
  search: z.record(z.string(), z.string()),
  updated_at: z.number().describe('Unix seconds.'),
})
