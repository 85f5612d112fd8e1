import { parseExact } from '@impresario/protocol'
import type { ReactNode } from 'react'
import { TextArea } from '../ui/field.tsx'

/** Text that is JSON, or what is wrong with it. */
export function readText(text: string): { readonly value?: unknown; readonly problem?: string } {
  try {
    const value = parseExact(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { value } : { problem: '{ … }' }
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) }
  }
}

export function JsonField({
  label,
  text,
  change,
  problem,
  rows = 8,
}: {
  readonly label: string
  readonly text: string
  readonly change: (text: string) => void
  readonly problem: string | undefined
  readonly rows?: number
}): ReactNode {
  return (
    <TextArea
      label={label}
      problem={problem}
      rows={rows}
      spellCheck={false}
      dir="ltr"
      value={text}
      onChange={({ target }) => change(target.value)}
      className="font-mono text-xs"
    />
  )
}
