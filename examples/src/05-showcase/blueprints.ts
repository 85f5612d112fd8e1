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
    history: z.object({ moisture: z.number() }),
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
        params: context.resultOf(shop.proof),
        strategy: 'cheapest',
        runTimeout: '2h',
        transitions: { success: 'soaked' },
        eventTransitions: { touch_dry: 'ready' },
      }),
    ),

    ready: state.end({ result: ({ resultOf, written }) => ({ ...resultOf(shop.proof), ...written('moisture') }) }),
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
    // Branches have names; a list of calls is a branch each. Strategy "least_connections": each plate goes to the press with
    // the fewest tasks.
    plates: state.handler(({ initialData: { file } }, actions) => {
      const plates = COLOURS.map((colour) => shop.plate({ file, colour }, { strategy: 'least_connections' }))
      return actions.dispatchParallel({ plates }, { into: 'plates_made' })
    }),
    // Says what it gathers, so that the results are typed. Runs once, after the last branch, and judges what came of them.
    plates_made: state.aggregator({ plates: [shop.plate] }, ({ results }, actions) => {
      const made = results.plates.filter((plate) => plate.status === 'success')
      const plates = made.map(({ data }) => data.plate)
      return plates.length < COLOURS.length ? actions.transitionTo('spoilt') : actions.transitionTo('print', { plates })
    }),

    // Strategy "round_robin": the presses take turns.
    print: state.handler(({ initialData: { copies }, written }, actions) => {
      const { plates } = written('plates')
      const bundles = Array.from({ length: BUNDLES }, (_, index) =>
        shop.print({ plates, bundle: index + 1, copies: copies / BUNDLES }, { strategy: 'round_robin' }),
      )
      return actions.dispatchParallel({ bundles }, { into: 'printed', policy: 'fail_fast' })
    }),
    printed: state.aggregator({ bundles: [shop.print] }, ({ results: { bundles } }, actions) => {
      const printed = bundles.filter((bundle) => bundle.status === 'success')
      if (printed.length < bundles.length) return actions.transitionTo('spoilt')
      return actions.transitionTo('inspect', { sheets: printed.reduce((sum, { data }) => sum + data.sheets, 0) })
    }),

    // Strategy "best_value": the price divided by the reputation. What somebody botched is tried again, elsewhere.
    inspect: state.handler((_context, actions) => {
      const samples = Array.from({ length: SAMPLES }, (_, index) =>
        shop.inspect({ sheet: index + 1 }, { strategy: 'best_value' }),
      )
      return actions.dispatchParallel({ samples }, { into: 'inspected' })
    }),
    inspected: state.aggregator({ samples: [shop.inspect] }, ({ results }, actions) => {
      const good = results.samples.filter((sample) => sample.status === 'success' && sample.data.good)
      return good.length < SAMPLES
        ? actions.transitionTo('spoilt')
        : actions.transitionTo('done', { inspected: good.length })
    }),

    done: state.end({ result: ({ written }) => written('plates', 'sheets', 'inspected') }),
    spoilt: state.end({ outcome: 'failed' }),
  }),
)

/** From the customer's file to a parcel at the door. */
export const printOrder = blueprint(
  'print_order',
  {
    input: z.object({ title: z.string(), file: z.string(), dpi: z.number(), copies: z.number().int().min(1) }),
    history: z.object({ file: z.string(), dpi: z.number() }),
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
    check: state.handler(({ written }, actions) =>
      actions.dispatchTask(shop.check, {
        params: { ...written('file', 'dpi'), model: PROFILE },
        strategy: 'default',
        transitions: { success: 'proof', too_coarse: 'retouch' },
      }),
    ),

    // Strategy "cheapest".
    retouch: state.handler(({ initialData: { file }, written }, actions) =>
      actions.dispatchTask(shop.retouch, {
        params: { file, ...written('dpi') },
        strategy: 'cheapest',
        transitions: { success: 'check' },
      }),
    ),

    // A blueprint in a blueprint: `resultOf(proofPrint)` is what it gave.
    proof: state.handler((context, actions) =>
      actions.runBlueprint(proofPrint, {
        initialData: context.written('file'),
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

    run: state.handler(({ initialData: { copies }, written }, actions) =>
      actions.runBlueprint(printRun, {
        initialData: { ...written('file'), copies },
        transitions: { success: 'pack', failure: 'refused' },
      }),
    ),

    pack: state.handler(({ initialData: { title, copies } }, actions) =>
      actions.dispatchTask(shop.pack, { params: { title, copies }, transitions: { success: 'delivered' } }),
    ),

    delivered: state.end({
      // Small orders had no proof: `outcomeOf` is undefined then.
      result: ({ resultOf, outcomeOf }) => {
        const proof = outcomeOf(proofPrint)
        return {
          parcel: resultOf(shop.pack).parcel,
          proof: proof?.status === 'success' ? proof.data.proof : null,
          run: resultOf(printRun),
        }
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
    output: z.object({ store: z.string(), paper: z.number() }),
    start: 'count',
  },
  (state) => ({
    count: state.handler((_context, actions) =>
      actions.dispatchTask(shop.count, { params: {}, transitions: { success: 'counted' } }),
    ),
    counted: state.end({
      result: ({ initialData: { store }, resultOf }) => ({ store, paper: resultOf(shop.count).paper }),
    }),
  }),
)
