import type { ClientTransport } from '@impresario/client'
import { TransportError } from '@impresario/worker'

type Reach = <T>(run: () => Promise<T>) => Promise<T>

/** Calls that a crash interrupts are repeated. New jobs and events get a key, so that they are not there twice. */
export function repeating(transport: () => ClientTransport, reach: Reach, key: () => string): ClientTransport {
  return new Proxy(transport(), {
    get: (_target, name) => {
      return async (...given: readonly unknown[]): Promise<unknown> => {
        const args = withKeys(name, given, key)
        for (;;) {
          try {
            return await reach(() => called(transport(), name, args))
          } catch (error) {
            if (!(error instanceof TransportError)) throw error
          }
        }
      }
    },
  })
}

function called(transport: ClientTransport, name: string | symbol, given: readonly unknown[]): Promise<unknown> {
  const method: unknown = Reflect.get(transport, name)
  if (typeof method !== 'function') throw new TypeError(`There is no ${String(name)}.`)
  return Promise.resolve(Reflect.apply(method, transport, given))
}

function withKeys(name: string | symbol, given: readonly unknown[], key: () => string): readonly unknown[] {
  if (name === 'createJob') return [{ idempotency_key: key(), ...object(given[0]) }]
  if (name === 'publishEvent') return [{ event_id: key(), ...object(given[0]) }]
  if (name === 'sendEvent') return [given[0], { event_id: key(), ...object(given[1]) }]
  return given
}

function object(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {}
}
