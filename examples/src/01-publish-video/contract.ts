import { contract } from 'impresario'
import { z } from 'zod'

/** What the workers of a small film studio can do. Files are named relative to the studio's directory. */
export const media = contract('media', {
  /** Draws the frames of one scene. */
  shoot: {
    input: z.object({
      scene: z.number().int().min(0),
      frames: z.number().int().min(1).max(48),
      width: z.number().int().min(16).max(960),
      height: z.number().int().min(9).max(540),
    }),
    output: z.object({ file: z.string(), frames: z.number() }),
  },
  /** Joins scenes into one video that every browser plays. */
  transcode: {
    input: z.object({ scenes: z.array(z.string()).min(1), framesPerSecond: z.number().int().min(1).max(60) }),
    output: z.object({ video: z.string(), frames: z.number(), bytes: z.number() }),
  },
  fingerprint: {
    input: z.object({ file: z.string() }),
    output: z.object({ sha256: z.string() }),
  },
  /** Writes the web page that shows the video. */
  page: {
    input: z.object({ title: z.string(), video: z.string(), sha256: z.string() }),
    output: z.object({ page: z.string() }),
  },
})
