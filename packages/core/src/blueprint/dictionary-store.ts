/** A dictionary that handlers share through `context.dataStores`. Asynchronous, so that a remote one fits in its place. */
export interface DictionaryStore<Value = unknown> {
  get(key: string): Promise<Value | undefined>
  set(key: string, value: Value): Promise<void>
  /** True if there was something to delete. */
  delete(key: string): Promise<boolean>
  has(key: string): Promise<boolean>
  keys(): Promise<readonly string[]>
  size(): Promise<number>
}

/** Keeps everything in this process: it is shared by all jobs here, and gone when the process ends. */
export function createDictionaryStore<Value = unknown>(
  initial: Readonly<Record<string, Value>> = {},
): DictionaryStore<Value> {
  const entries = new Map<string, Value>(Object.entries(initial))
  return {
    get: async (key) => entries.get(key),
    set: async (key, value) => {
      entries.set(key, value)
    },
    delete: async (key) => entries.delete(key),
    has: async (key) => entries.has(key),
    keys: async () => [...entries.keys()],
    size: async () => entries.size,
  }
}
