import { blueprint } from '@impresario/core'

function lengthOf(texts = []) {
  let sum = 0
  for (const text of texts) sum += text.length
  return sum
}

/** One task, which gets the measures of the data, and what it shall echo. */
export const soak = blueprint('soak', { start: 'work', backoffMs: 50 }, (state) => ({
  work: state.handler(({ initialData }, actions) =>
    actions.dispatchTask({
      type: 'measure',
      params: {
        number: initialData.number,
        chars: lengthOf(initialData.texts),
        holes: (initialData.holes ?? []).length,
        echo: initialData.echo ?? '',
      },
      transitions: { success: 'done' },
    }),
  ),
  done: state.end(),
}))

/** Nobody has the skill: it waits until it is cancelled. */
export const soakForever = blueprint('soak_forever', { start: 'work' }, (state) => ({
  work: state.handler((_context, actions) =>
    actions.dispatchTask({ type: 'nobody-can', transitions: { success: 'done' } }),
  ),
  done: state.end(),
}))
