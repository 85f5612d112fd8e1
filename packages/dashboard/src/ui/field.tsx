import { useId } from 'react'
import type { InputHTMLAttributes, ReactNode, SelectHTMLAttributes, TextareaHTMLAttributes } from 'react'

const BOX =
  'w-full rounded-md border border-edge bg-panel px-2.5 text-ink placeholder:text-faint focus-visible:outline-offset-0 aria-invalid:border-bad'

interface Labelled {
  readonly label: string
  /** For those who do not see it only. */
  readonly isLabelHidden?: boolean
  readonly note?: ReactNode
  readonly problem?: string | undefined
}

function Frame({
  id,
  label,
  isLabelHidden = false,
  note,
  problem,
  children,
}: Labelled & { readonly id: string; readonly children: ReactNode }): ReactNode {
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label htmlFor={id} className={isLabelHidden ? 'sr-only' : 'font-medium'}>
        {label}
      </label>
      {children}
      {note === undefined ? null : (
        <p id={`${id}-note`} className="text-xs text-soft">
          {note}
        </p>
      )}
      {problem === undefined ? null : (
        <p id={`${id}-problem`} role="alert" className="text-xs text-bad">
          {problem}
        </p>
      )}
    </div>
  )
}

export function Input({
  label,
  isLabelHidden,
  note,
  problem,
  className = '',
  ...rest
}: Labelled & InputHTMLAttributes<HTMLInputElement>): ReactNode {
  const id = useId()
  return (
    <Frame id={id} label={label} {...frameOf({ isLabelHidden, note, problem })}>
      <input id={id} className={`${BOX} h-8 ${className}`} {...described(id, note, problem)} {...rest} />
    </Frame>
  )
}

export function TextArea({
  label,
  isLabelHidden,
  note,
  problem,
  className = '',
  ...rest
}: Labelled & TextareaHTMLAttributes<HTMLTextAreaElement>): ReactNode {
  const id = useId()
  return (
    <Frame id={id} label={label} {...frameOf({ isLabelHidden, note, problem })}>
      <textarea
        id={id}
        className={`${BOX} ${className.includes('min-h-') ? '' : 'min-h-20'} py-2 ${className}`}
        {...described(id, note, problem)}
        {...rest}
      />
    </Frame>
  )
}

export function Select({
  label,
  isLabelHidden,
  note,
  problem,
  className = '',
  children,
  ...rest
}: Labelled & SelectHTMLAttributes<HTMLSelectElement>): ReactNode {
  const id = useId()
  return (
    <Frame id={id} label={label} {...frameOf({ isLabelHidden, note, problem })}>
      <select id={id} className={`${BOX} h-8 pr-7 ${className}`} {...described(id, note, problem)} {...rest}>
        {children}
      </select>
    </Frame>
  )
}

function frameOf(given: {
  readonly isLabelHidden: boolean | undefined
  readonly note: ReactNode
  readonly problem: string | undefined
}): Partial<Labelled> {
  return {
    ...(given.isLabelHidden === undefined ? {} : { isLabelHidden: given.isLabelHidden }),
    ...(given.note === undefined ? {} : { note: given.note }),
    ...(given.problem === undefined ? {} : { problem: given.problem }),
  }
}

function described(id: string, note: ReactNode, problem: string | undefined): object {
  const ids = [note === undefined ? '' : `${id}-note`, problem === undefined ? '' : `${id}-problem`].filter(Boolean)
  return {
    ...(ids.length === 0 ? {} : { 'aria-describedby': ids.join(' ') }),
    ...(problem === undefined ? {} : { 'aria-invalid': true }),
  }
}
