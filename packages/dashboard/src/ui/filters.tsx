import type { ReactNode } from 'react'
import { useAddress } from '../data/search.ts'
import { Input, Select } from './field.tsx'

/** A choice that is kept in the address; its first line chooses nothing. */
export function FilterSelect({
  name,
  label,
  any,
  options,
}: {
  /** Under which name the address has it. */
  readonly name: string
  readonly label: string
  readonly any: string
  readonly options: readonly (readonly [value: string, text: string])[]
}): ReactNode {
  const [search, change] = useAddress()
  return (
    <Select
      label={label}
      isLabelHidden
      value={search[name] ?? ''}
      onChange={({ target }) => change({ [name]: target.value })}
    >
      <option value="">{any}</option>
      {options.map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
    </Select>
  )
}

/** A search beside the title of a page, kept in the address. */
export function FilterSearch({ label }: { readonly label: string }): ReactNode {
  const [search, change] = useAddress()
  return (
    <div className="w-60">
      <Input
        type="search"
        label={label}
        isLabelHidden
        placeholder={label}
        value={search['q'] ?? ''}
        onChange={({ target }) => change({ q: target.value }, true)}
      />
    </div>
  )
}
