import { useQueryClient } from '@tanstack/react-query'
import { Link, Outlet, useNavigate } from '@tanstack/react-router'
import { useCallback, useEffect, useMemo, useState } from 'react'
import type { ReactNode } from 'react'
import { useIsLive } from './data/live.ts'
import { useIsReached } from './data/reach.ts'
import { useCounts } from './data/queries.ts'
import { useLiveRefresh } from './data/refresh.ts'
import { signOut, useSession } from './data/session.ts'
import { ALL_PLACES, PLACES } from './navigation.ts'
import type { Destination } from './navigation.ts'
import { Palette } from './palette.tsx'
import { Shortcuts } from './shortcuts.tsx'
import { useText } from './text/text.tsx'
import { LANGUAGES } from './text/translate.ts'
import type { Language } from './text/translate.ts'
import { currentTheme, toggleTheme } from './theme.ts'
import { Dialog } from './ui/dialog.tsx'
import { Icon } from './ui/icon.tsx'
import { IconButton } from './ui/button.tsx'
import { useKeys } from './ui/keys.tsx'

type Overlay = 'palette' | 'shortcuts' | 'menu'

/** The frame of all pages: where to go, who is here, and what keys do. */
export function Shell(): ReactNode {
  const [overlay, setOverlay] = useState<Overlay>()
  const navigate = useNavigate()
  const { t } = useText()
  const close = (): void => setOverlay(undefined)
  const keys = useMemo(
    () => ({
      '?': () => setOverlay('shortcuts'),
      '/': () => document.querySelector<HTMLInputElement>('input[type="search"]')?.focus(),
      ...Object.fromEntries(
        ALL_PLACES.map(({ key, to }) => [
          `g ${key}`,
          () => {
            void navigate({ to })
          },
        ]),
      ),
    }),
    [navigate],
  )
  useKeys(keys)
  useLiveRefresh()
  const openPalette = useCallback(() => setOverlay('palette'), [])
  usePaletteKey(openPalette)
  return (
    <div className="flex h-full">
      <a
        href="#content"
        className="sr-only z-50 rounded-md bg-fill px-3 py-2 text-white focus:not-sr-only focus:fixed focus:top-3 focus:left-3"
        onClick={(event) => {
          event.preventDefault()
          document.querySelector<HTMLElement>('#content')?.focus()
        }}
      >
        {t('shell.skip')}
      </a>
      <aside className="hidden w-56 shrink-0 flex-col border-r border-line bg-panel md:flex">
        <Brand />
        <button
          type="button"
          onClick={() => setOverlay('palette')}
          className="mx-3 mb-3 flex h-8 items-center gap-2 rounded-md border border-line bg-bg px-2.5 text-faint hover:border-edge"
        >
          <Icon name="search" className="size-3.5" />
          <span className="flex-1 text-left">{t('shell.search')}</span>
          <kbd className="rounded border border-line bg-panel px-1 font-sans text-xs">{PALETTE_KEY}</kbd>
        </button>
        <Sidebar />
        <PollingNote />
        <Foot />
      </aside>
      <div className="flex min-w-0 flex-1 flex-col">
        <MobileBar open={setOverlay} />
        <div className="bg-panel md:hidden">
          <PollingNote />
        </div>
        <main id="content" tabIndex={-1} className="min-h-0 flex-1 overflow-y-auto outline-none">
          <div className="mx-auto max-w-[88rem] px-4 pt-5 pb-24 md:px-8 md:pt-7 md:pb-12">
            <Outlet />
          </div>
        </main>
        <BottomBar />
      </div>
      {overlay === 'palette' ? <Palette close={close} /> : null}
      {overlay === 'shortcuts' ? <Shortcuts close={close} /> : null}
      {overlay === 'menu' ? (
        <Dialog title={t('shell.menu')} close={close}>
          <div onClickCapture={(event) => event.target instanceof HTMLElement && event.target.closest('a') && close()}>
            <Sidebar />
          </div>
          <Foot />
        </Dialog>
      ) : null}
    </div>
  )
}

const PALETTE_KEY = /mac/i.test(navigator.userAgent) ? '⌘K' : 'Ctrl K'

function usePaletteKey(open: () => void): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      open()
    }
    document.addEventListener('keydown', onKey)
    return () => document.removeEventListener('keydown', onKey)
  }, [open])
}

function Brand(): ReactNode {
  const { t } = useText()
  return (
    <Link to="/" className="flex items-center gap-2.5 px-4 pt-4 pb-4">
      <img src="icon.svg" alt="" className="size-6" />
      <span className="text-base font-semibold tracking-tight">Impresario</span>
      <span className="sr-only">{t('nav.home')}</span>
      <span className="ml-auto">
        <LiveDot />
      </span>
    </Link>
  )
}

function LiveDot(): ReactNode {
  const { t } = useText()
  const isLive = useIsLive()
  const words = t(isLive ? 'shell.live' : 'shell.polling')
  return (
    <span title={words} className={`block size-2 rounded-full ${isLive ? 'bg-ok' : 'bg-edge'}`}>
      <span className="sr-only">{words}</span>
    </span>
  )
}

/** A stream that begins needs a moment; only one that does not come is worth a word. */
const NOTE_AFTER_MS = 3_000

/** Says that changes do not come by themselves. */
function PollingNote(): ReactNode {
  const { t } = useText()
  const isLive = useIsLive()
  const isReached = useIsReached()
  const [isLate, setLate] = useState(false)
  useEffect(() => {
    setLate(false)
    if (isLive) return undefined
    const timer = setTimeout(() => setLate(true), NOTE_AFTER_MS)
    return () => clearTimeout(timer)
  }, [isLive])
  if (isReached && (isLive || !isLate)) return null
  return (
    <p role="note" className="flex items-center gap-2 border-t border-line px-4 py-2 text-xs text-soft">
      <span aria-hidden="true" className={`size-2 shrink-0 rounded-full ${isReached ? 'bg-warn' : 'bg-bad'}`} />
      {t(isReached ? 'shell.polling' : 'common.unreachable')}
    </p>
  )
}

function useBadges(): Readonly<Record<string, number>> {
  const { data } = useCounts()
  return { '/approvals': data?.jobs['waiting_for_human'] ?? 0, '/quarantine': data?.jobs['quarantined'] ?? 0 }
}

function Sidebar(): ReactNode {
  const { t } = useText()
  const badges = useBadges()
  return (
    <nav aria-label={t('shell.menu')} className="min-h-0 flex-1 overflow-y-auto px-3 pb-3">
      {PLACES.map(([group, places]) => (
        <div key={group ?? ''} className="mb-3">
          {group === undefined ? null : <p className="px-2 pt-1 pb-1 text-xs text-faint">{t(group)}</p>}
          <ul>
            {places.map((place) => (
              <li key={place.to}>
                <NavLink place={place} count={badges[place.to] ?? 0} />
              </li>
            ))}
          </ul>
        </div>
      ))}
    </nav>
  )
}

function NavLink({ place, count }: { readonly place: Destination; readonly count: number }): ReactNode {
  const { t } = useText()
  return (
    <Link
      to={place.to}
      activeOptions={{ exact: place.to === '/', includeSearch: false }}
      className="flex h-8 items-center gap-2.5 rounded-md px-2 font-medium text-soft hover:bg-raise hover:text-ink aria-[current=page]:bg-raise aria-[current=page]:text-ink"
    >
      <Icon name={place.icon} />
      <span className="flex-1 truncate">{t(place.title)}</span>
      {count === 0 ? null : (
        <span className="num rounded-full bg-ask-tint px-1.5 text-xs font-semibold text-ask">{count}</span>
      )}
    </Link>
  )
}

function Foot(): ReactNode {
  const { t, language, choose } = useText()
  const { session } = useSession()
  const [theme, setTheme] = useState(currentTheme)
  const queries = useQueryClient()
  return (
    <div className="flex flex-wrap items-center gap-1 border-t border-line p-3">
      <div className="mb-1 flex w-full min-w-0 items-center gap-2 px-1">
        <Icon name="person" className="size-4 text-faint" />
        <span className="truncate font-medium">
          <bdi>{session?.client_id}</bdi>
        </span>
        <span className="ml-auto rounded bg-raise px-1.5 text-xs text-soft">{session?.role}</span>
      </div>
      <IconButton
        icon={theme === 'dark' ? 'sun' : 'moon'}
        label={t(theme === 'dark' ? 'shell.light' : 'shell.dark')}
        onClick={() => setTheme(toggleTheme())}
      />
      <select
        aria-label={t('shell.language')}
        value={language}
        onChange={({ target }) => choose(target.value as Language)}
        className="h-8 flex-1 rounded-md bg-transparent px-1 text-soft hover:bg-raise"
      >
        {Object.entries(LANGUAGES).map(([id, name]) => (
          <option key={id} value={id} className="bg-panel text-ink">
            {name}
          </option>
        ))}
      </select>
      {session?.expires_at === null ? null : (
        <IconButton
          icon="out"
          label={t('shell.signOut')}
          onClick={() => {
            void signOut(queries)
          }}
        />
      )}
    </div>
  )
}

function MobileBar({ open }: { readonly open: (overlay: Overlay) => void }): ReactNode {
  const { t } = useText()
  return (
    <header className="flex items-center gap-2 border-b border-line bg-panel px-3 py-2 md:hidden">
      <img src="icon.svg" alt="" className="size-6" />
      <span className="flex-1 font-semibold">Impresario</span>
      <LiveDot />
      <IconButton icon="search" label={t('shell.search')} onClick={() => open('palette')} className="size-10" />
      <IconButton icon="menu" label={t('shell.menu')} onClick={() => open('menu')} className="size-10" />
    </header>
  )
}

/** On a phone, the places that a thumb needs. */
function BottomBar(): ReactNode {
  const { t } = useText()
  const badges = useBadges()
  const places = PLACES[0]?.[1] ?? []
  return (
    <nav
      aria-label={t('shell.quick')}
      className="fixed inset-x-0 bottom-0 z-30 grid grid-cols-4 border-t border-line bg-panel pb-[env(safe-area-inset-bottom)] md:hidden"
    >
      {places.map(({ to, title, icon }) => (
        <Link
          key={to}
          to={to}
          activeOptions={{ exact: to === '/', includeSearch: false }}
          className="relative flex h-14 flex-col items-center justify-center gap-0.5 text-xs text-soft aria-[current=page]:text-accent"
        >
          <Icon name={icon} className="size-5" />
          <span className="max-w-full truncate px-1">{t(title)}</span>
          {(badges[to] ?? 0) === 0 ? null : (
            <span className="num absolute top-1.5 left-[calc(50%+0.5rem)] rounded-full bg-ask-tint px-1 text-[0.65rem] font-semibold text-ask">
              {badges[to]}
            </span>
          )}
        </Link>
      ))}
    </nav>
  )
}
