import { writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { newDirectory } from '../engine/documents.fixture.ts'
import { QuietFiles } from './quiet-files.ts'

test('[L-01] a file that is made again while its absence is looked at is not lost', async () => {
  const path = join(await newDirectory('folder'), 'again.txt')
  const verdicts: string[] = []
  const quiet = new QuietFiles(
    3_600_000,
    (_path, verdict) => verdicts.push(verdict),
    () => undefined,
  )
  onTestFinished(() => quiet.close())
  quiet.heard(path)
  const looking = quiet.look()
  // The look has begun and finds nothing; the file comes, and so does its event, before the answer is taken in.
  quiet.heard(path)
  await looking
  expect(verdicts).toEqual([])
  writeFileSync(path, 'содержание')
  await quiet.look()
  expect(quiet.size).toBe(1)
  await rm(path)
  await quiet.look()
})

test('[L-01] a file that is gone, and of which nothing more is heard, is told once', async () => {
  const path = join(await newDirectory('folder'), 'gone.txt')
  const verdicts: string[] = []
  const quiet = new QuietFiles(
    3_600_000,
    (_path, verdict) => verdicts.push(verdict),
    () => undefined,
  )
  onTestFinished(() => quiet.close())
  quiet.heard(path)
  quiet.heard(path)
  await quiet.look()
  await quiet.look()
  expect(verdicts).toEqual(['gone'])
})
