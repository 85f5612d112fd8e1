import type { ReactNode } from 'react'
import type { TextKey } from '../text/translate.ts'
import { useText } from '../text/text.tsx'

type Tone = 'ok' | 'bad' | 'warn' | 'info' | 'ask' | 'dim'

/** How a status looks: what ended well, what failed, what a person has to do, what moves, what waits. */
const TONES: Readonly<Record<string, Tone>> = {
  pending: 'dim',
  running: 'info',
  waiting_for_worker: 'info',
  waiting_for_parallel: 'info',
  waiting_for_child: 'info',
  waiting_for_time: 'dim',
  waiting_for_event: 'dim',
  waiting_for_human: 'ask',
  quarantined: 'warn',
  finished: 'ok',
  failed: 'bad',
  error: 'bad',
  cancelled: 'dim',
  canceled: 'dim',
  idle: 'ok',
  busy: 'info',
  full: 'warn',
  draining: 'warn',
  offline: 'dim',
  active: 'ok',
  paused: 'warn',
  off: 'dim',
  succeeded: 'ok',
  queued: 'dim',
  waiting: 'dim',
  skipped: 'dim',
  delivered: 'ok',
  open: 'warn',
  half_open: 'info',
  disabled: 'bad',
  ok: 'ok',
  ready: 'ok',
  starting: 'warn',
  stopping: 'warn',
  completed: 'ok',
  silent: 'warn',
  stopped: 'dim',
}

const CLASSES: Readonly<Record<Tone, string>> = {
  ok: 'text-ok bg-ok-tint',
  bad: 'text-bad bg-bad-tint',
  warn: 'text-warn bg-warn-tint',
  info: 'text-info bg-info-tint',
  ask: 'text-ask bg-ask-tint',
  dim: 'text-dim bg-dim-tint',
}

const MOVING = new Set(['running', 'waiting_for_worker', 'waiting_for_parallel', 'waiting_for_child', 'busy'])

export function toneOf(status: string): Tone {
  return TONES[status] ?? 'dim'
}

export function StatusBadge({ status }: { readonly status: string }): ReactNode {
  const { t } = useText()
  return (
    <span
      className={`inline-flex h-5.5 items-center gap-1.5 rounded-full px-2 text-xs font-medium whitespace-nowrap ${CLASSES[toneOf(status)]}`}
    >
      <span className={`size-1.5 rounded-full bg-current ${MOVING.has(status) ? 'pulse' : ''}`} />
      {statusWords(t, status)}
    </span>
  )
}

/** The word for a status; a status that this version does not know is shown as it is. */
export function statusWords(t: (key: TextKey) => string, status: string): string {
  const key = `status.${status}`
  return isStatusKey(key) ? t(key) : status.replaceAll('_', ' ')
}

function isStatusKey(key: string): key is TextKey {
  return KNOWN.has(key.slice('status.'.length))
}

const KNOWN = new Set(Object.keys(TONES))
