import type { Item, Job, Put } from '@impresario/core'

export function job(id: string, fields: Partial<Job> = {}): Job {
  return {
    id,
    blueprint: 'press',
    blueprintVersion: 1,
    client: { id: 'client' },
    status: 'running',
    state: 'start',
    visit: 1,
    failures: 0,
    initialData: {},
    stateHistory: {},
    branches: {},
    priority: 0,
    depth: 0,
    trail: [],
    createdAt: 1,
    updatedAt: 1,
    ...fields,
  }
}

export function putJob(id: string, version: number, fields: Partial<Job> = {}): Put {
  const value = job(id, fields)
  return { kind: 'job', id, version, value, facets: { owner: 'client', status: value.status, name: 'press' } }
}

export function item(id: string, fields: Partial<Item> = {}): Item {
  return { queue: 'turns', id, lane: 'a', priority: 0, delayMs: 0, payload: { id }, ...fields }
}
