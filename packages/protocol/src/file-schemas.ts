import { z } from 'zod'

const moment = z.number().describe('Unix seconds.')
const seconds = z.coerce.number().int().min(1).max(604_800)
const filename = z.string().min(1).describe('Name of a file within its job, such as `in/report.pdf`.')
export const fileParams = z.object({ job_id: z.string().describe('Id of a job.'), filename })
export const fileListQuery = z.looseObject({
  prefix: z.string().optional().describe('Only files whose names begin with this.'),
  after: z.string().optional().describe('Only files behind this name: `next` of the page before.'),
  limit: z.coerce.number().int().min(1).max(1_000).optional().describe('So many at most; 1,000 without it.'),
})
export const fileUploadQuery = z.looseObject({
  filename,
  bytes: z.coerce
    .number()
    .int()
    .min(0)
    .optional()
    .describe(
      'How long the file is. With it, an upload may go straight to S3; without it, it goes through this server.',
    ),
  expires_in: seconds.optional().describe('Seconds that the address is good for; 3,600 without it.'),
})
export const fileLinkQuery = z.looseObject({
  filename,
  expires_in: seconds.optional().describe('Seconds that the link is good for; a week without it.'),
})
export const fileCapabilityQuery = z.looseObject({
  capability: z.string().max(200).optional().describe('The signed permission for this one file, as the link has it.'),
})
export const fileBody = z.object({
  name: z.string(),
  uri: z.string().describe('Its address in the params of tasks: workers find a local path in its place.'),
  bytes: z.int(),
  etag: z.string().describe('Changes with the content.'),
  modified_at: moment,
})
export const fileListBody = z.object({
  files: z.array(fileBody).describe('In the order of their names.'),
  next: z.string().nullish().describe('There are more: pass it as `after`.'),
})
export const fileUploadReply = z.object({
  status: z.literal('uploaded'),
  s3_uri: z.string(),
  name: z.string(),
  bytes: z.int(),
  etag: z.string(),
  sha256: z.string(),
})
export const fileGrantBody = z.object({
  url: z.string(),
  method: z.enum(['GET', 'PUT']),
  expires_in: z.int().describe('Seconds.'),
})
export const fileDeletedReply = z.object({ status: z.literal('deleted'), name: z.string() })
