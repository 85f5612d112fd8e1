import { CLIENT_PATHS } from '@impresario/protocol'
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { CLIENT_TOKEN } from './server-under-test.ts'
import type { ServerUnderTest } from './server-under-test.ts'

const UPLOADS = 20
const READERS = 8
const STRAYS = 4

/**
 * Connections that take up resources: bodies that arrive very slowly, responses that are not read, callers that
 * disconnect at once.
 */
export class Nuisances {
  readonly #server: ServerUnderTest
  isOn = true
  connections = 0

  constructor(server: ServerUnderTest) {
    this.#server = server
  }

  async run(): Promise<void> {
    await Promise.all([
      ...Array.from({ length: UPLOADS }, () => this.#again(() => this.#uploadSlowly())),
      ...Array.from({ length: READERS }, () => this.#again(() => this.#readNothing())),
      ...Array.from({ length: STRAYS }, () => this.#again(() => this.#hangUp())),
    ])
  }

  async #again(work: () => Promise<void>): Promise<void> {
    while (this.isOn) {
      this.connections += 1
      await work()
      await pause(100 + Math.random() * 400)
    }
  }

  async #uploadSlowly(): Promise<void> {
    const socket = this.#open(
      `POST ${CLIENT_PATHS.jobs} HTTP/1.1\r\nhost: x\r\nx-client-token: ${CLIENT_TOKEN}\r\n` +
        'content-type: application/json\r\ncontent-length: 500000\r\n\r\n',
    )
    socket.resume()
    const ends = performance.now() + 10_000
    while (this.isOn && !socket.destroyed && performance.now() < ends) {
      socket.write(' '.repeat(2_000))
      await pause(200)
    }
    socket.destroy()
  }

  /** Repeatedly requests large lists on one connection, and reads none of the data. */
  async #readNothing(): Promise<void> {
    const path = `${CLIENT_PATHS.jobs}?limit=100&fields=job_id,initial_data,state_history`
    const head = `GET ${path} HTTP/1.1\r\nhost: x\r\nx-client-token: ${CLIENT_TOKEN}\r\n\r\n`
    const socket = this.#open(head.repeat(10))
    socket.pause()
    const ends = performance.now() + 20_000
    while (this.isOn && !socket.destroyed && performance.now() < ends) await pause(200)
    socket.destroy()
  }

  async #hangUp(): Promise<void> {
    const socket = this.#open(`GET ${CLIENT_PATHS.jobs} HTTP/1.1\r\nhost: x\r\nx-client-to`)
    await pause(Math.random() * 50)
    socket.resetAndDestroy()
  }

  #open(head: string): Socket {
    const { hostname, port } = new URL(this.#server.url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => undefined)
    socket.write(head)
    return socket
  }
}
