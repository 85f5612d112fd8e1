import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { Client, Job } from '@impresario/client'
import { catalogueVideo, createStudio, publishVideo } from '@impresario/examples'
import { DemoStory } from './demo-story.ts'
import { COMMAND } from './failure.ts'
import type { Screen } from './screen.ts'
import { span } from './time.ts'

type Studio = ReturnType<typeof createStudio>
type Connection = Parameters<typeof createStudio>[0]['connection']

export const demoBlueprints = [publishVideo, catalogueVideo]

interface DemoOptions {
  readonly client: Client
  readonly connection: Connection
  /** Where the demo's workers put their files. */
  readonly directory: string
  readonly screen: Screen
  /** A link that opens the page of a job in the dashboard and signs in. */
  readonly linkTo: (jobId: string) => string
}

interface RunOptions {
  /** Questions are answered by the demo; without it the demo waits for a person. */
  readonly approveAfterSeconds: number | undefined
  readonly signal: AbortSignal
}

/** A film studio in this process, and one job for it. */
export class Demo {
  readonly #options: DemoOptions
  readonly #studio: Studio
  /** The job that is told, once its id is known: its first tasks begin before. */
  #told: Promise<{ readonly jobId: string; readonly story: DemoStory } | undefined> = Promise.resolve(undefined)

  constructor(options: DemoOptions) {
    const { connection, directory } = options
    this.#options = options
    this.#studio = createStudio({
      directory,
      connection,
      onTask: (workerId, task) => this.#tellTask(workerId, task),
    })
  }

  async start(): Promise<void> {
    await Promise.all(this.#studio.map((worker) => worker.start()))
  }

  async stop(): Promise<void> {
    await Promise.all(this.#studio.map((worker) => worker.stop()))
  }

  /** Tasks that the studio is working on. */
  get running(): number {
    return this.#studio.reduce((sum, worker) => sum + worker.running.length, 0)
  }

  /** Runs the job to its end and tells it on the way. */
  async run({ approveAfterSeconds, signal }: RunOptions): Promise<void> {
    const { client, screen, linkTo } = this.#options
    const story = new DemoStory(screen)
    const starting = client.start(publishVideo, { title: 'First light', quality: 'low' })
    this.#told = starting.then(({ id: jobId }) => {
      screen.out(`A job of ${screen.paint('bold', 'publish_video')}: ${screen.paint('dim', jobId)}`)
      screen.out(`Watch it: ${screen.paint('cyan', linkTo(jobId))}\n`)
      return { jobId, story }
    })
    const job = await starting
    let isAsked = false
    for await (const now of job.watch({ signal })) {
      story.catchUp(now)
      if (now.status === 'waiting_for_human' && !isAsked) {
        isAsked = true
        await this.#ask(now, story, approveAfterSeconds, signal)
      }
      if (now.status === 'finished') this.#tellResult(now)
    }
    this.#told = Promise.resolve(undefined)
  }

  async #ask(job: Job, story: DemoStory, seconds: number | undefined, signal: AbortSignal): Promise<void> {
    const { client, screen } = this.#options
    story.line(`A person decides:  ${screen.paint('cyan', `${COMMAND} jobs approve ${job.id} approved`)}`)
    if (seconds === undefined) {
      story.line(screen.paint('dim', 'Type this in a second terminal; the job waits for it.'))
      return
    }
    story.line(screen.paint('dim', `The demo does it itself in ${seconds} s; with --interactive it waits for you.`))
    await sleep(seconds * 1000, undefined, { signal })
    const { status } = await client.job(job.id).status()
    if (status === 'waiting_for_human') await client.approve(job.id, 'approved', { comment: 'Looks good.' })
  }

  #tellResult(job: Job<{ readonly page: string }>): void {
    const { screen, directory } = this.#options
    const took = span((job.endedAt ?? job.updatedAt) - job.createdAt)
    const page = pathToFileURL(join(directory, job.result?.page ?? '')).href
    screen.out(`\nDone after ${took}. Watch the video: ${screen.paint('cyan', page)}`)
  }

  /** The worker waits until this is told, so that the story keeps its order. */
  async #tellTask(workerId: string, task: { readonly jobId: string; readonly type: string }): Promise<void> {
    const { client } = this.#options
    const told = await this.#told
    if (told === undefined) return
    const { jobId, story } = told
    // The ids of children begin with the id of their parent.
    if (task.jobId !== jobId && !task.jobId.startsWith(`${jobId}-`)) return
    const [job, explained] = await Promise.all([client.job(jobId).status(), client.explain(task.jobId)])
    story.catchUp(job)
    const found = explained.tasks.find((one) => one.type === task.type && one.explanation !== null)
    story.taskTaken(task.type, workerId, found?.explanation ?? undefined)
  }
}
