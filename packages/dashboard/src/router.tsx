import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  parseSearchWith,
  stringifySearchWith,
} from '@tanstack/react-router'
import type { AnyRoute, AnyRouter, RouteComponent } from '@tanstack/react-router'
import { ApiError, request } from './data/api.ts'
import { BASE, rootUrl } from './data/places.ts'
import { loadWhenReached } from './data/reach.ts'
import { HomePage } from './pages/home.tsx'
import { JobsPage } from './pages/jobs.tsx'
import { NotFound } from './pages/not-found.tsx'
import { Shell } from './shell.tsx'

/** What a page keeps in its address: texts by name. */
export type Search = Readonly<Record<string, string>>

const root = createRootRoute({
  component: Shell,
  notFoundComponent: NotFound,
  validateSearch: (search: Readonly<Record<string, unknown>>): Search =>
    Object.fromEntries(Object.entries(search).map(([name, value]) => [name, String(value)])),
})

const page = (path: string, component: RouteComponent): AnyRoute =>
  createRoute({ getParentRoute: () => root, path, component })

async function isServerThere(): Promise<boolean> {
  try {
    await request(rootUrl('_public/status'))
    return true
  } catch (error) {
    return !(error instanceof ApiError && error.status === 0)
  }
}

/** A page that is loaded when somebody goes there, or is about to. */
function later<Name extends string>(
  path: string,
  load: () => Promise<Readonly<Record<Name, RouteComponent>>>,
  name: Name,
): AnyRoute {
  const loaded = (): Promise<Record<Name, RouteComponent>> => loadWhenReached(load, isServerThere)
  return page(path, lazyRouteComponent(loaded, name) as RouteComponent)
}

const PAGES = [
  page('/', HomePage),
  page('/jobs', JobsPage),
  later('/jobs/$id', () => import('./job/job-page.tsx'), 'JobPage'),
  later('/approvals', () => import('./pages/approvals.tsx'), 'ApprovalsPage'),
  later('/quarantine', () => import('./pages/quarantine.tsx'), 'QuarantinePage'),
  later('/workers', () => import('./pages/workers.tsx'), 'WorkersPage'),
  later('/workers/$id', () => import('./pages/worker.tsx'), 'WorkerPage'),
  later('/blueprints', () => import('./pages/blueprints.tsx'), 'BlueprintsPage'),
  later('/blueprints/$name', () => import('./pages/blueprint.tsx'), 'BlueprintPage'),
  later('/queues', () => import('./pages/queues.tsx'), 'QueuesPage'),
  later('/schedules', () => import('./pages/schedules.tsx'), 'SchedulesPage'),
  later('/automations', () => import('./pages/automations.tsx'), 'AutomationsPage'),
  later('/automations/new', () => import('./automation/editor-page.tsx'), 'NewAutomationPage'),
  later('/automations/calendar', () => import('./automation/calendar-page.tsx'), 'CalendarPage'),
  later('/automations/$id/edit', () => import('./automation/editor-page.tsx'), 'EditAutomationPage'),
  later('/automations/$id', () => import('./pages/automation.tsx'), 'AutomationPage'),
  later('/runs', () => import('./pages/runs.tsx'), 'RunsPage'),
  later('/runs/$id', () => import('./pages/run.tsx'), 'RunPage'),
  later('/documents', () => import('./pages/documents.tsx'), 'DocumentsPage'),
  later('/events', () => import('./pages/events.tsx'), 'EventsPage'),
  later('/webhooks', () => import('./pages/webhooks.tsx'), 'WebhooksPage'),
  later('/agents', () => import('./pages/agents.tsx'), 'AgentsPage'),
  later('/agents/$id', () => import('./pages/agent.tsx'), 'AgentPage'),
  later('/settings', () => import('./pages/settings.tsx'), 'SettingsPage'),
]

/** Texts stay texts in the address: no quotes, no braces. */
const parseSearch = parseSearchWith((text) => text)
const stringifySearch = stringifySearchWith(String)

export function createAppRouter(): AnyRouter {
  return createRouter({
    routeTree: root.addChildren(PAGES),
    basepath: BASE.pathname,
    parseSearch,
    stringifySearch,
    defaultPreload: 'intent',
    scrollRestoration: true,
    scrollToTopSelectors: ['#content'],
    defaultNotFoundComponent: NotFound,
  })
}
