import { z } from 'zod'

const moment = z.number().describe('Unix seconds.')

export const scheduleParams = z.object({ schedule: z.string().describe('Name of a schedule.') })
export const scheduleBody = z.looseObject({
  name: z.string(),
  blueprint: z.string(),
  enabled: z.boolean().describe('As its file says.'),
  paused_at: moment.nullable().describe('Since when it is paused, in Unix seconds; null if it is not.'),
  paused_by: z.string().nullable().describe('Who has paused it.'),
  client: z.string().describe('Whose jobs they are.'),
  trigger: z.looseObject({
    kind: z.enum(['interval', 'daily', 'weekly', 'monthly']),
    every_seconds: z.number().optional(),
    time: z.string().optional().describe('Such as 07:30.'),
    days: z.array(z.int()).optional().describe('From 1 (Monday) to 7.'),
    dates: z.array(z.union([z.int(), z.literal('last')])).optional(),
  }),
  timezone: z.string(),
  misfire: z.enum(['skip', 'run_once', 'catch_up']),
  next_at: moment.nullable().describe('When it fires next, in Unix seconds; null while it is off or paused.'),
  last_for: moment.nullable().describe('The firing that was served last, in Unix seconds.'),
  last_at: moment.nullable().describe('When it was served, in Unix seconds.'),
  last_job_id: z.string().nullable(),
  upcoming: z.array(moment).describe('The next ten firings, in Unix seconds; none while it is off or paused.'),
  recent: z
    .array(
      z.object({
        for: moment.describe('When it was due.'),
        at: moment.describe('When it was served or left out.'),
        job_id: z.string().nullable().describe('The job that it started.'),
        skipped: z
          .enum(['missed', 'clock_went_back', 'paused'])
          .nullable()
          .describe(
            'Why it started none: no server ran in time, a clock that was wrong had served times to come, or it was paused.',
          ),
      }),
    )
    .describe('What became of the last ten firings since it is on, newest first.'),
})
export const scheduleList = z.array(scheduleBody)
