import { expect, test } from 'vitest'
import { Stage, oneTask } from '../stage.fixture.ts'

test('[C-10] workers may be many or say much of themselves, but not both', async () => {
  const stage = new Stage([oneTask()], { settings: { workerBytesMax: 200_000 } })
  const skills = Array.from({ length: 900 }, (_, index) => `a-skill-with-a-long-name-${index}`)
  await stage.worker('w1', { skills })
  await stage.worker('w2', { skills })
  await stage.worker('w3', { skills })
  await expect(stage.worker('w4', { skills: ['work'] })).rejects.toMatchObject({
    code: 'TOO_MANY_REQUESTS',
    details: { retry_after_s: 60 },
  })
  // Those who are here may come again, and say less.
  for (const id of ['w1', 'w2']) await stage.worker(id, { skills: ['work'] })
  await stage.worker('w4', { skills: ['work'] })
})
