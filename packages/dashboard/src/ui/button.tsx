import { Link } from '@tanstack/react-router'
import type { ButtonHTMLAttributes, ReactNode } from 'react'
import { Icon } from './icon.tsx'
import type { IconName } from './icon.tsx'

type Tone = 'primary' | 'plain' | 'danger' | 'quiet'

const TONES: Readonly<Record<Tone, string>> = {
  primary: 'bg-fill text-white border-transparent hover:brightness-110',
  plain: 'bg-panel text-ink border-line hover:border-edge hover:bg-raise',
  danger: 'bg-panel text-bad border-line hover:border-bad hover:bg-bad-tint',
  quiet: 'bg-transparent text-soft border-transparent hover:bg-raise hover:text-ink',
}

const SHAPE =
  'inline-flex items-center justify-center gap-1.5 rounded-md border font-medium whitespace-nowrap select-none disabled:opacity-50 transition-colors'

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly tone?: Tone
  readonly icon?: IconName
  readonly size?: 'small' | 'normal' | 'large'
}

const SIZES = { small: 'h-7 px-2 text-xs', normal: 'h-8 px-3 text-sm', large: 'h-11 px-4 text-base' } as const

export function Button({
  tone = 'plain',
  icon,
  size = 'normal',
  className = '',
  children,
  ...rest
}: ButtonProps): ReactNode {
  return (
    <button type="button" className={`${SHAPE} ${SIZES[size]} ${TONES[tone]} ${className}`} {...rest}>
      {icon === undefined ? null : <Icon name={icon} className="size-3.5" />}
      {children}
    </button>
  )
}

/** A button that is only its picture, with a name for those who do not see it. */
export function IconButton({
  icon,
  label,
  className = '',
  ...rest
}: Omit<ButtonProps, 'children'> & { readonly icon: IconName; readonly label: string }): ReactNode {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      className={`inline-flex size-8 shrink-0 items-center justify-center rounded-md text-soft hover:bg-raise hover:text-ink ${className}`}
      {...rest}
    >
      <Icon name={icon} />
    </button>
  )
}

export function LinkButton({
  to,
  params,
  search,
  icon,
  children,
  tone = 'plain',
}: {
  readonly to: string
  readonly params?: Readonly<Record<string, string>>
  readonly search?: Readonly<Record<string, string>>
  readonly icon?: IconName
  readonly tone?: Tone
  readonly children: ReactNode
}): ReactNode {
  return (
    <Link
      to={to}
      {...(params === undefined ? {} : { params })}
      {...(search === undefined ? {} : { search })}
      className={`${SHAPE} ${SIZES.normal} ${TONES[tone]}`}
    >
      {icon === undefined ? null : <Icon name={icon} className="size-3.5" />}
      {children}
    </Link>
  )
}
