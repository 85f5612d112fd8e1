import { createServer as createNetServer } from 'node:net'
import { join, relative, resolve as absolute } from 'node:path'
import { createClient } from '@impresario/client'
import { devStateBody, devTokens, writeDevState } from './dev-state.ts'
import type { DevState } from './dev-state.ts'
import { COMMAND, EXIT, Failure } from './failure.ts'
import type { Screen } from './screen.ts'
import { screenFor } from './session.ts'
import type { GlobalOptions } from './session.ts'
import { StopSignals, untilStopped } from './signals.ts'
import { facts } from './table.ts'

export interface DevOptions extends GlobalOptions {
  readonly port?: number
  readonly data: string
  readonly blueprints?: string
  /** False with `--no-type-check`. */
  readonly typeCheck?: boolean
  readonly interactive?: boolean
  readonly approveAfter: number
}

/** Everything on this machine: server, storage in a directory, tokens, and a demo if there is nothing else to run. */
export async function dev(options: DevOptions): Promise<number> {
  const screen = storyScreen(options)
  const directory = absolute(options.data)
  const { createLog, createServer, loadSettings } = await import('@impresario/server')
  const { doubtfulVariables } = await import('@impresario/server/config')
  const tokens = await devTokens(directory)
  const settings = loadSettings({ environment: devEnvironment(options, directory, tokens), directory: process.cwd() })
  const { logLevel: level, logFormat: format, timeZone, instanceId: instance } = settings
  const log = createLog({ level, format, timeZone, instance, destination: process.stderr })
  for (const warning of doubtfulVariables(process.env)) log.warn(warning)
  const apiPort = await freePort(screen, settings.apiHost, settings.apiPort)
  const isDemo = settings.blueprintsDir === ''
  const { Demo, demoBlueprints } = await import('./demo.ts')
  const { DemoDocuments } = await import('./demo-documents.ts')
  const documents = isDemo ? await DemoDocuments.create(join(directory, 'demo')) : undefined
  const signals = new StopSignals()
  const reachesThisMachine = isLoopbackHost(settings.apiHost)
  const server = createServer({
    settings: { ...settings, apiPort },
    ...(documents === undefined
      ? {}
      : { blueprints: [...demoBlueprints, documents.app.blueprint], documents: documents.app }),
    watch: !isDemo,
    checksTypes: options.typeCheck !== false,
    guardsProcess: true,
    reachesThisMachine,
    log,
  })
  const { address } = await server.start()
  signals.hold()
  const state: DevState = { url: address, clientToken: settings.clientToken, workerToken: settings.workerToken }
  await writeDevState(directory, state)
  if (options.json === true) screenFor(options).out(JSON.stringify(devStateBody(state)))
  const dashboard = server.dashboardLink('default')
  screen.out(greeting(screen, state, { directory, blueprintsDir: settings.blueprintsDir, dashboard }))
  if (reachesThisMachine) screen.out(screen.paint('dim', THIS_MACHINE))

  const client = createClient({ url: address, token: state.clientToken })
  const connection = { transport: server.localTransport(), log: screenLog(screen) }
  const linkTo = (jobId: string): string => server.dashboardLink('default', `jobs/${jobId}`)
  const demo = isDemo ? new Demo({ client, connection, directory: join(directory, 'demo'), screen, linkTo }) : undefined
  const stopping = new AbortController()
  const stopped = untilStopped({
    signals,
    screen,
    waitsFor: () => waitsFor(demo?.running ?? 0),
    stop: async () => {
      stopping.abort()
      await demo?.stop()
      await documents?.stop()
      await server.stop()
    },
  })
  if (demo !== undefined) {
    await demo.start()
    const approveAfterSeconds = options.interactive === true ? undefined : options.approveAfter
    const show = async (): Promise<void> => {
      await demo.run({ approveAfterSeconds, signal: stopping.signal })
      await documents?.start(server)
      await documents?.show(screen, stopping.signal)
    }
    await show().catch((error: unknown) => {
      if (!stopping.signal.aborted) screen.err(`The demo failed: ${String(error)}`)
    })
    if (!stopping.signal.aborted) screen.out(thingsToTry(screen, state))
  } else {
    screen.out(firstSteps(screen, state))
  }
  await stopped
  return EXIT.ok
}

const THIS_MACHINE =
  'In dev, http.request and webhooks may reach this machine (localhost, any port). "start" does not allow it.\n'

/** Who can reach the server could otherwise reach everything else that listens here. */
function isLoopbackHost(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.')
}

/** The story is for people: where JSON was asked for, it goes to the error stream. */
function storyScreen(options: DevOptions): Screen {
  const screen = screenFor({ ...options, json: false })
  return options.json === true ? { ...screen, isTerminal: false, out: screen.err } : screen
}

type Environment = Readonly<Record<string, string | undefined>>

/** What the developer has set counts; the rest is chosen for one person at one machine. */
function devEnvironment(
  options: DevOptions,
  directory: string,
  tokens: Pick<DevState, 'clientToken' | 'workerToken'>,
): Environment {
  const { env } = process
  const blueprints = options.blueprints ?? env['BLUEPRINTS_DIR']
  return {
    ...env,
    API_HOST: env['API_HOST'] ?? '127.0.0.1',
    API_PORT: options.port === undefined ? env['API_PORT'] : String(options.port),
    // The demo tells its own story; with blueprints of your own you want to see that they were reloaded.
    LOG_LEVEL: env['LOG_LEVEL'] ?? (blueprints === undefined || blueprints === '' ? 'warn' : 'info'),
    LOG_FORMAT: env['LOG_FORMAT'] ?? 'text',
    BLUEPRINTS_DIR: blueprints,
    CLIENT_TOKEN: env['CLIENT_TOKEN'] ?? tokens.clientToken,
    WORKER_TOKEN: env['WORKER_TOKEN'] ?? tokens.workerToken,
    STORAGE_URL: `file:${directory}`,
    // Everything that happened, for the dashboard and `jobs history`.
    HISTORY_DATABASE_URI: env['HISTORY_DATABASE_URI'] ?? `sqlite:${join(directory, 'history.db')}`,
    REDIS_HOST: undefined,
    REDIS_PORT: undefined,
    REDIS_DB: undefined,
  }
}

const PORTS_TRIED_MAX = 50

async function freePort(screen: Screen, host: string, wanted: number): Promise<number> {
  if (wanted === 0) return 0
  for (let port = wanted; port < wanted + PORTS_TRIED_MAX && port <= 65_535; port += 1) {
    if (!(await isFree(host, port))) continue
    if (port !== wanted) screen.err(screen.paint('yellow', `Port ${wanted} is in use, so this one listens on ${port}.`))
    return port
  }
  throw new Failure('PORT_IN_USE', `Port ${wanted} is in use, and so are the ${PORTS_TRIED_MAX} after it.`, {
    hint: 'Choose one with --port; --port 0 takes any.',
  })
}

function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = createNetServer()
    probe.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false)
      else reject(new Failure('CANNOT_LISTEN', `${host}:${port} cannot be listened on: ${error.message}`))
    })
    probe.listen({ host, port }, () => probe.close(() => resolve(true)))
  })
}

function greeting(
  screen: Screen,
  state: DevState,
  {
    directory,
    blueprintsDir,
    dashboard,
  }: { readonly directory: string; readonly blueprintsDir: string; readonly dashboard: string },
): string {
  const place = relative(process.cwd(), directory)
  const about = facts(screen, [
    ['dashboard', `${screen.paint('cyan', dashboard)} (signs in, once)`],
    ['address', screen.paint('cyan', state.url)],
    ['API', `${screen.paint('cyan', `${state.url}/_public/docs`)} (reference of the HTTP API)`],
    ['client token', state.clientToken],
    ['worker token', blueprintsDir === '' ? undefined : state.workerToken],
    ['blueprints', blueprintsDir === '' ? undefined : `${blueprintsDir} (watched)`],
    ['data', place === '' || place.startsWith('..') ? directory : `./${place}`],
  ])
  return `\n${screen.paint('bold', 'Impresario')} is running. Ctrl-C stops it.\n\n${about}\n`
}

function thingsToTry(screen: Screen, { url, clientToken }: DevState): string {
  const command = (text: string): string => screen.paint('cyan', text)
  return [
    '',
    screen.paint('bold', 'Try it in a second terminal:'),
    '',
    '  another video, in better quality',
    command(`    curl ${url}/api/v1/jobs -H 'x-client-token: ${clientToken}' \\`),
    command(`      -H 'content-type: application/json' \\`),
    command(`      -d '{"blueprint": "publish_video", "initial_data": {"title": "Second light", "quality": "high"}}'`),
    '  find it, watch it, and approve it',
    command(`    ${COMMAND} jobs list`),
    command(`    ${COMMAND} jobs watch <job>`),
    command(`    ${COMMAND} jobs approve <job> approved`),
    '  why a worker got a task, the history of the job, and the workers',
    command(`    ${COMMAND} explain <job>`),
    command(`    ${COMMAND} jobs history <job>`),
    command(`    ${COMMAND} workers`),
    '  the blueprint as a picture',
    command(`    ${COMMAND} blueprint graph publish_video -o publish-video.svg`),
    '  search the documents; files that you add to the folder are found a second later',
    command(`    curl -G ${url}/api/v1/documents -H 'x-client-token: ${clientToken}' --data-urlencode 'q=warehouse'`),
    '',
  ].join('\n')
}

/** For blueprints of one's own. */
function firstSteps(screen: Screen, { url, workerToken }: DevState): string {
  const command = (text: string): string => screen.paint('cyan', text)
  return [
    screen.paint('bold', 'In other terminals:'),
    '',
    '  a worker',
    command(`    ORCHESTRATOR_URL=${url} WORKER_TOKEN=${workerToken} npx tsx <your worker>.ts`),
    '  a job',
    command(`    ${COMMAND} jobs start <blueprint> --watch`),
    '  list the blueprints, and see why a job waits',
    command(`    ${COMMAND} blueprint list`),
    command(`    ${COMMAND} explain <job>`),
    '',
  ].join('\n')
}

function waitsFor(running: number): string {
  if (running === 0) return 'writing data to disk.'
  return `waiting for ${running === 1 ? 'a running task' : `${running} running tasks`}.`
}

/** The workers of the demo only speak when something is wrong. */
function screenLog(screen: Screen): Record<'debug' | 'info' | 'warn' | 'error', (message: string) => void> {
  const say = (message: string): void => screen.err(screen.paint('yellow', message))
  return { debug: () => {}, info: () => {}, warn: say, error: say }
}
