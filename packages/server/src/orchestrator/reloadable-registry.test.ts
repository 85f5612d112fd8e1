import { blueprint } from '@impresario/core'
import { LIMITS } from '@impresario/protocol'
import { expect, test } from 'vitest'
import { ReloadableRegistry } from './reloadable-registry.ts'

const DEFAULTS = { taskAttemptsMax: 9, handlerAttemptsMax: 8, transitionsMax: 7, runTimeoutMs: 6 }

const OWN_MS = 1_234

function named(name: string, more: object = {}) {
  return blueprint(name, { start: 'done', ...more }, (state) => ({ done: state.end() }))
}

test('[A-09] configured numbers hold for blueprints that name none', () => {
  const registry = new ReloadableRegistry(
    [named('plain'), named('own', { taskAttemptsMax: 2, runTimeout: OWN_MS })],
    DEFAULTS,
  )
  expect(registry.latest('plain')?.policy).toMatchObject(DEFAULTS)
  expect(registry.latest('own')?.policy).toMatchObject({ ...DEFAULTS, taskAttemptsMax: 2, runTimeoutMs: OWN_MS })
  expect(registry.latest('plain')?.nodes).toHaveLength(1)
})

test('[A-09] a blueprint that names a built-in number keeps it, whatever is configured', () => {
  const { taskAttemptsMax, handlerAttemptsMax, transitionsMaxDefault: transitionsMax, runTimeoutMs } = LIMITS
  const shape = { taskAttemptsMax, handlerAttemptsMax, transitionsMax, runTimeout: runTimeoutMs }
  const registry = new ReloadableRegistry([named('own', shape)], DEFAULTS)
  const own = { taskAttemptsMax, handlerAttemptsMax, transitionsMax, runTimeoutMs }
  expect(registry.latest('own')?.policy).toMatchObject(own)
})

test('[C-04] the configured time for runs leaves a blueprint alone that has its own time for results', () => {
  const registry = new ReloadableRegistry([named('timed', { resultTimeout: OWN_MS })], DEFAULTS)
  const { resultTimeoutMs, runTimeoutMs } = registry.latest('timed')?.policy ?? {}
  expect([resultTimeoutMs, runTimeoutMs]).toEqual([OWN_MS, undefined])
})

test('[A-09] a blueprint that does not tell its defaults apart keeps its whole policy', () => {
  const { ownPolicy: _, ...foreign } = named('foreign')
  const registry = new ReloadableRegistry([foreign], DEFAULTS)
  expect(registry.latest('foreign')?.policy).toEqual(foreign.policy)
})

test('[A-09] endpoints are found with and without their slashes; those of the server itself are refused', () => {
  const registry = new ReloadableRegistry([named('a', { endpoint: '/jobs/make/it' })])
  expect(registry.byEndpoint('jobs/make/it')).toBe('a')
  expect(registry.byEndpoint('/jobs/make/it/')).toBe('a')
  expect(registry.byEndpoint('jobs')).toBeUndefined()
  for (const endpoint of ['/jobs', '/', '/jobs/batch', '/jobs/x/cancel']) {
    expect(() => new ReloadableRegistry([named('b', { endpoint })])).toThrow('which the server needs itself')
  }
})

test('[A-09] a blueprint is found under jobs/ and its name, unless another has that endpoint', () => {
  const registry = new ReloadableRegistry([named('a'), named('b', { endpoint: '/jobs/c' }), named('c')])
  const found = ['jobs/a', '/jobs/b/', 'jobs/c', 'jobs/d', 'a', 'jobs/a/b'].map((path) =>
    registry.byEndpoint(path, 'v1'),
  )
  expect(found).toEqual(['a', 'b', 'b', undefined, undefined, undefined])
})

test('[A-09] a replacement that is refused leaves what was there', () => {
  const registry = new ReloadableRegistry([named('given')])
  registry.replace([{ file: 'one.ts', blueprint: named('one') }])
  const twice = [
    { file: 'two.ts', blueprint: named('two') },
    { file: 'three.ts', blueprint: named('given') },
  ]
  expect(() => registry.replace(twice)).toThrow('three.ts: Blueprint "given"')
  expect(registry.list().map(({ name }) => name)).toEqual(['given', 'one'])
})
