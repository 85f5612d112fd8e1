import type { ReactNode } from 'react'
import { useText } from '../text/text.tsx'
import { IconButton } from '../ui/button.tsx'
import { Input, Select } from '../ui/field.tsx'
import { changed, numberOrText, textOf } from './draft.ts'
import type { Draft } from './draft.ts'
import type { ProblemAt } from './problems.ts'
import { cronOf, kindOf, plainTime, TRIGGER_KINDS, triggerOf } from './trigger-kind.ts'
import type { PlainTime, TriggerKind } from './trigger-kind.ts'

interface TriggerProps {
  readonly trigger: Draft
  readonly change: (trigger: Draft) => void
  readonly problemAt: ProblemAt
}

/** One trigger: its kind, and the few fields of that kind. */
export function TriggerEditor({
  number,
  remove,
  ...props
}: TriggerProps & { readonly number: number; readonly remove: () => void }): ReactNode {
  const { t } = useText()
  const { trigger, change, problemAt } = props
  const kind = kindOf(trigger)
  return (
    <fieldset className="rounded-lg border border-line p-3">
      <legend className="px-1 font-medium">{t('editor.trigger', { n: number })}</legend>
      <div className="flex flex-wrap items-start gap-3">
        <div className="w-60">
          <Select
            label={t('editor.when')}
            value={kind}
            onChange={({ target }) => change(triggerOf(target.value as TriggerKind, trigger))}
          >
            {TRIGGER_KINDS.map((one) => (
              <option key={one} value={one}>
                {t(`trigger.${one}`)}
              </option>
            ))}
          </Select>
        </div>
        <Fields kind={kind} {...props} />
        <div className="ml-auto pt-5">
          <IconButton icon="trash" label={t('editor.removeTrigger', { n: number })} onClick={remove} />
        </div>
      </div>
      <Said messages={problemAt('')} />
    </fieldset>
  )
}

export function Said({ messages }: { readonly messages: readonly string[] }): ReactNode {
  return messages.map((message) => (
    <p key={message} role="alert" className="mt-2 text-xs [overflow-wrap:anywhere] text-bad">
      {message}
    </p>
  ))
}

function Fields({ kind, trigger, change }: TriggerProps & { readonly kind: TriggerKind }): ReactNode {
  const { t } = useText()
  const plain = plainTime(textOf(trigger['cron']))
  if (plain !== undefined && kind !== 'cron') return <PlainFields plain={plain} trigger={trigger} change={change} />
  const text = (name: string, label: string, placeholder = ''): ReactNode => (
    <div className="min-w-40 flex-1">
      <Input
        label={label}
        placeholder={placeholder}
        value={textOf(trigger[name])}
        onChange={({ target }) => change({ ...trigger, [name]: target.value })}
      />
    </div>
  )
  switch (kind) {
    case 'every':
      return (
        <div className="w-40">
          <Input
            label={t('editor.seconds')}
            type="number"
            min={1}
            value={textOf(trigger['every'])}
            onChange={({ target }) => change({ ...trigger, every: numberOrText(target.value) ?? 0 })}
          />
        </div>
      )
    case 'once':
      return (
        <div className="w-56">
          <Input
            label={t('editor.moment')}
            type="datetime-local"
            value={textOf(trigger['once']).slice(0, 16)}
            onChange={({ target }) => change({ ...trigger, once: target.value })}
          />
        </div>
      )
    case 'rrule':
      return text('rrule', 'RRULE')
    case 'event':
      return (
        <>
          {text('event', t('editor.topic'), 'order.*')}
          <div className="min-w-40 flex-1">
            <Input
              label={t('editor.filter')}
              placeholder="event.payload.total > 100"
              value={textOf(trigger['filter'])}
              onChange={({ target }) => change(changed(trigger, { filter: target.value }))}
            />
          </div>
        </>
      )
    case 'condition':
      return text('condition', t('editor.condition'), 'output.free_percent < 10')
    case 'webhook':
      return text('source', t('editor.source'))
    default:
      return text('cron', t('trigger.cron'), '0 9 * * 1-5')
  }
}

function PlainFields({
  plain,
  trigger,
  change,
}: {
  readonly plain: PlainTime
  readonly trigger: Draft
  readonly change: (trigger: Draft) => void
}): ReactNode {
  const { t, language } = useText()
  const put = (next: Partial<PlainTime>): void => change({ ...trigger, cron: cronOf({ ...plain, ...next }) })
  return (
    <>
      {plain.kind === 'weekly' ? (
        <div className="w-44">
          <Select
            label={t('editor.weekday')}
            value={plain.day}
            onChange={({ target }) => put({ day: Number(target.value) })}
          >
            {[1, 2, 3, 4, 5, 6, 0].map((day) => (
              <option key={day} value={day}>
                {weekday(day, language)}
              </option>
            ))}
          </Select>
        </div>
      ) : null}
      {plain.kind === 'monthly' ? (
        <div className="w-28">
          <Input
            label={t('editor.date')}
            type="number"
            min={1}
            max={31}
            value={plain.day}
            onChange={({ target }) => put({ day: Math.min(31, Math.max(1, Number(target.value) || 1)) })}
          />
        </div>
      ) : null}
      <div className="w-32">
        <Input
          label={t('editor.time')}
          type="time"
          required
          value={plain.time}
          onChange={({ target }) => {
            if (/^\d\d:\d\d$/.test(target.value)) put({ time: target.value })
          }}
        />
      </div>
    </>
  )
}

/** The fourth of January 1970 was a Sunday. */
function weekday(day: number, language: string): string {
  return new Intl.DateTimeFormat(language, { weekday: 'long', timeZone: 'UTC' }).format((3 + day) * 86_400_000)
}
