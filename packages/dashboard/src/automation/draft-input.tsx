import type { InputHTMLAttributes, ReactNode } from 'react'
import { Input } from '../ui/field.tsx'
import { numberOrText, textOf } from './draft.ts'
import type { Draft } from './draft.ts'

/** A field of a draft in one line, with what is wrong with it. */
export function DraftInput({
  draft,
  name,
  put,
  problemAt,
  type = 'text',
  ...rest
}: {
  readonly draft: Draft
  readonly name: string
  readonly put: (part: Draft) => void
  readonly problemAt?: (name: string) => readonly string[]
  readonly label: string
} & Pick<InputHTMLAttributes<HTMLInputElement>, 'type' | 'min' | 'max' | 'placeholder'>): ReactNode {
  return (
    <Input
      type={type}
      {...rest}
      value={textOf(draft[name])}
      problem={problemAt?.(name)[0]}
      onChange={({ target }) => put({ [name]: type === 'number' ? numberOrText(target.value) : target.value })}
    />
  )
}
