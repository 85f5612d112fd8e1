import { blueprint } from 'impresario'
import { z } from 'zod'
import { shop } from './contract.ts'

const COLOURS = ['cyan', 'magenta', 'yellow', 'black', 'gold'] as const
const BUNDLES = 3
/** Sheets that are drawn from every order and inspected. */
const SAMPLES = 8
/** The colour profile of the shop's paper. */
export const PROFILE = 'fogra51'

/** A part of the work that has a script of its own: another job runs it, and the order waits for its result. */
export const proofPrint = blueprint(
  'proof_print',
  {
    input: z.object({ file: z.string() }),
    history: z.object({ proof: z.string(), moisture: z.number() }),
    output: z.object({ proof: z.string(), moisture: z.number() }),
    start: 'print',
  },
  (state) => ({
    print: state.handler((context, actions) =>
      actions.dispatchTask(shop.proof, {
        params: context.initialData,
        strategy: 'cheapest',
        transitions: { success: 'dry' },
      }),
    ),

    // The rack is set for an hour. When its sensor reports earlier that the ink is dry, the job goes on at once, and the
    // rack is told to stop.
    dry: state.handler((context, actions) =>
      actions.dispatchTask(shop.dry, {
        params: { proof: context.stateHistory.proof },
        strategy: 'cheapest',
        runTimeout: '2h',
        transitions: { success: 'soaked' },
        eventTransitions: { touch_dry: 'ready' },
      }),
    ),

    ready: state.end({ result: ({ stateHistory: { proof, moisture } }) => ({ proof, moisture }) }),
    soaked: state.end({ outcome: 'failed' }),
  }),
)

/** Two fan-outs with their aggregators, and a third one whose tasks go to whoever is worth the money. */
export const printRun = blueprint(
  'print_run',
  {
    input: z.object({ file: z.string(), copies: z.number().int() }),
    history: z.object({ plates: z.array(z.string()), sheets: z.number(), inspected: z.number() }),
    output: z.object({ plates: z.array(z.string()), sheets: z.number(), inspected: z.number() }),
    start: 'plates',
    backoffMs: 100,
  },
  (state) => ({
    // The first way: several tasks whose transitions all lead to one aggregator.
    // Strategy "least_connections": each plate goes to the press with the fewest tasks.
    plates: state.handler(({ initialData: { file } }, actions) =>
      COLOURS.map((colour) =>
        actions.dispatchTask(shop.plate, {
          params: { file, colour },
          strategy: 'least_connections',
          transitions: { success: 'plates_made', failure: 'plates_made' },
        }),
      ),
    ),
    // Runs once, after the last branch, and judges what came of them.
    plates_made: state.aggregator((context, actions) => {
      const made = Object.values(context.aggregationResults).map(({ data }) => shop.plate.output.safeParse(data))
      const plates = made.flatMap(({ data }) => (data === undefined ? [] : [data.plate]))
      return plates.length < COLOURS.length ? actions.transitionTo('spoilt') : actions.transitionTo('print', { plates })
    }),

    // The second way. Strategy "round_robin": the presses take turns.
    print: state.handler(({ initialData: { copies }, stateHistory: { plates } }, actions) =>
      actions.dispatchParallel(
        Array.from({ length: BUNDLES }, (_, index) =>
          shop.print({ plates, bundle: index + 1, copies: copies / BUNDLES }, { strategy: 'round_robin' }),
        ),
        { into: 'printed', policy: 'fail_fast' },
      ),
    ),
    printed: state.aggregator((context, actions) => {
      const results = Object.values(context.aggregationResults)
      if (results.some(({ status }) => status !== 'success')) return actions.transitionTo('spoilt')
      const sheets = results.map(({ data }) => shop.print.output.parse(data).sheets)
      return actions.transitionTo('inspect', { sheets: sheets.reduce((sum, count) => sum + count, 0) })
    }),

    // Strategy "best_value": the price divided by the reputation. What somebody botched is tried again, elsewhere.
    inspect: state.handler((_context, actions) =>
      actions.dispatchParallel(
        Array.from({ length: SAMPLES }, (_, index) => shop.inspect({ sheet: index + 1 }, { strategy: 'best_value' })),
        { into: 'inspected' },
      ),
    ),
    inspected: state.aggregator((context, actions) => {
      const results = Object.values(context.aggregationResults)
      const good = results.filter(({ data }) => shop.inspect.output.safeParse(data).data?.good === true)
      return good.length < SAMPLES
        ? actions.transitionTo('spoilt')
        : actions.transitionTo('done', { inspected: good.length })
    }),

    done: state.end({ result: ({ stateHistory: { plates, sheets, inspected } }) => ({ plates, sheets, inspected }) }),
    spoilt: state.end({ outcome: 'failed' }),
  }),
)

/** From the customer's file to a parcel at the door. */
export const printOrder = blueprint(
  'print_order',
  {
    input: z.object({ title: z.string(), file: z.string(), dpi: z.number(), copies: z.number().int().min(1) }),
    history: z.object({
      file: z.string(),
      dpi: z.number(),
      proof_print: z.object({ proof: z.string(), moisture: z.number() }).optional(),
      print_run: z.object({ plates: z.array(z.string()), sheets: z.number(), inspected: z.number() }),
      parcel: z.string(),
    }),
    output: z.object({
      parcel: z.string(),
      proof: z.string().nullable(),
      run: z.object({ plates: z.array(z.string()), sheets: z.number(), inspected: z.number() }),
    }),
    start: 'received',
  },
  (state) => ({
    // Conditions: the first one that holds decides. Small orders with a good file go straight to the presses.
    received: state
      .when('context.initial_data.copies <= 100 and context.initial_data.dpi >= 300', ({ initialData }, actions) =>
        actions.transitionTo('run', { file: initialData.file, dpi: initialData.dpi }),
      )
      .otherwise(({ initialData }, actions) =>
        actions.transitionTo('check', { file: initialData.file, dpi: initialData.dpi }),
      ),

    // Strategy "default": who has the profile loaded comes first, whatever it costs.
    // A status of our own: `too_coarse` is neither a success nor a failure, and has its own way.
    check: state.handler(({ stateHistory: { file, dpi } }, actions) =>
      actions.dispatchTask(shop.check, {
        params: { file, dpi, model: PROFILE },
        strategy: 'default',
        transitions: { success: 'proof', too_coarse: 'retouch' },
      }),
    ),

    // Strategy "cheapest".
    retouch: state.handler(({ initialData: { file }, stateHistory: { dpi } }, actions) =>
      actions.dispatchTask(shop.retouch, {
        params: { file, dpi },
        strategy: 'cheapest',
        transitions: { success: 'check' },
      }),
    ),

    // A blueprint in a blueprint: its result is in the state history, under its name.
    proof: state.handler((context, actions) =>
      actions.runBlueprint(proofPrint, {
        initialData: { file: context.stateHistory.file },
        transitions: { success: 'approval', failure: 'refused' },
      }),
    ),

    // The job waits for a person: a second or a week.
    approval: state.handler(({ initialData: { title, copies } }, actions) =>
      actions.awaitHumanApproval({
        message: `Shall we print ${copies} copies of "${title}"?`,
        transitions: { approved: 'run', rejected: 'refused', expired: 'refused' },
        expires: '7d',
      }),
    ),

    run: state.handler(({ initialData: { copies }, stateHistory: { file } }, actions) =>
      actions.runBlueprint(printRun, {
        initialData: { file, copies },
        transitions: { success: 'pack', failure: 'refused' },
      }),
    ),

    pack: state.handler(({ initialData: { title, copies } }, actions) =>
      actions.dispatchTask(shop.pack, { params: { title, copies }, transitions: { success: 'delivered' } }),
    ),

    delivered: state.end({
      result: ({ stateHistory: { parcel, proof_print: proof, print_run: run } }) => {
        return { parcel, proof: proof?.proof ?? null, run }
      },
    }),
    refused: state.end({ outcome: 'failed' }),
  }),
)

/** Started by a schedule, and by nobody else. */
export const stockCount = blueprint(
  'stock_count',
  {
    input: z.object({ store: z.string() }),
    history: shop.count.output,
    output: z.object({ store: z.string(), paper: z.number() }),
    start: 'count',
  },
  (state) => ({
    count: state.handler((_context, actions) =>
      actions.dispatchTask(shop.count, { params: {}, transitions: { success: 'counted' } }),
    ),
    counted: state.end({
      result: ({ initialData: { store }, stateHistory: { paper } }) => ({ store, paper }),
    }),
  }),
)
