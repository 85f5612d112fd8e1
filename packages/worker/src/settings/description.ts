import { createHash } from 'node:crypto'
import { hostname, networkInterfaces } from 'node:os'
import {
  canonicalMessage,
  isJsonObject,
  type Json,
  type JsonObject,
  type RegisterRequest,
  type SkillInfo,
  type WireArtifact,
  type WireDevice,
} from '@impresario/protocol'
import { numbersIn, objectsIn, textsIn, type Named } from './environment.ts'
import type { WorkerEnvironment } from './environment-keys.ts'
import type { Skill } from '../tasks/handler.ts'
import type { WorkerOptions, WorkerSettings } from './settings.ts'

interface Given {
  readonly concurrency: number
  readonly extra: JsonObject
}

/** What the worker says about itself, whatever its skills. */
export function selfDescription(
  options: WorkerOptions,
  said: WorkerEnvironment,
  given: Given,
): Omit<RegisterRequest, 'worker_id'> {
  const costPerSecond = options.costPerSecond ?? said.costPerSecond
  const address = addressOf()
  const artifacts = ifSet(said.installedArtifacts, (text) => objectsIn('INSTALLED_ARTIFACTS', text, 'name'))
  const software = ifSet(said.installedSoftware, (text) => textsIn('INSTALLED_SOFTWARE', text))
  return {
    resources: resourcesOf(options, said, given.concurrency),
    installed_software: options.software ?? software ?? { node: process.versions.node },
    installed_models: options.models?.map(artifactOf) ?? modelsFrom(said.installedModels),
    ...(artifacts === undefined ? {} : { installed_artifacts: artifacts.map(namedArtifact) }),
    capabilities: {
      hostname: hostname(),
      ...(address === undefined ? {} : { ip_address: address }),
      cost_per_skill:
        options.costPerSkill ?? ifSet(said.costPerSkill, (text) => numbersIn('COST_PER_SKILL', text)) ?? {},
      ...(costPerSecond === undefined ? {} : { cost_per_second: costPerSecond }),
      extra: { ...given.extra, websockets: options.webSockets ?? said.enableWebsockets, ...options.extra },
    },
  }
}

function resourcesOf(
  options: WorkerOptions,
  said: WorkerEnvironment,
  concurrency: number,
): NonNullable<RegisterRequest['resources']> {
  const gpu = options.gpu ?? gpuFrom(said)
  const ramGb = options.ramGb ?? said.ramGb
  const devices =
    options.devices ?? ifSet(said.devices, (text) => objectsIn('WORKER_DEVICES', text, 'type').map(device))
  const listed = devices ?? (gpu?.id === undefined ? undefined : [gpuDevice({ ...gpu, id: gpu.id })])
  return {
    max_concurrent_tasks: concurrency,
    cpu_cores: options.cpuCores ?? said.cpuCores,
    // A card among the devices is not told a second time: it would count as two.
    gpu_info: gpu === undefined || listed !== undefined ? null : { model: gpu.model, vram_gb: gpu.vramGb },
    ...(ramGb === undefined ? {} : { ram_gb: ramGb }),
    ...(listed === undefined ? {} : { devices: listed }),
  }
}

function ifSet<T>(text: string | undefined, read: (text: string) => T): T | undefined {
  return text === undefined ? undefined : read(text)
}

function gpuFrom(said: WorkerEnvironment): WorkerOptions['gpu'] {
  const { gpuModel, gpuVramGb, gpuId } = said
  if (gpuModel === undefined) return undefined
  return { model: gpuModel, vramGb: gpuVramGb, ...(gpuId === undefined ? {} : { id: gpuId }) }
}

function gpuDevice(gpu: { readonly model: string; readonly vramGb: number; readonly id: string }): WireDevice {
  return { type: 'gpu', model: gpu.model, id: gpu.id, properties: { vram_gb: gpu.vramGb } }
}

function addressOf(): string | undefined {
  const all = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
  return all.find((one) => !one.internal && one.family === 'IPv4')?.address
}

function artifactOf(model: string | { readonly name: string; readonly version?: string }): WireArtifact {
  return typeof model === 'string' ? { name: model } : model
}

function modelsFrom(text: string | undefined): readonly WireArtifact[] {
  return text === undefined ? [] : objectsIn('INSTALLED_MODELS', text, 'name').map(namedArtifact)
}

/** Only what the protocol knows: an orchestrator may refuse what has another shape. */
function namedArtifact({ key: name, fields }: Named): WireArtifact {
  const { version, type, properties } = fields
  return {
    name,
    ...(typeof version === 'string' ? { version } : {}),
    ...(typeof type === 'string' ? { type } : {}),
    ...(isJsonObject(properties) ? { properties } : {}),
  }
}

function device({ key: type, fields }: Named): WireDevice {
  const { model, id, properties } = fields
  return {
    type,
    ...(typeof model === 'string' ? { model } : {}),
    ...(typeof id === 'string' ? { id } : {}),
    ...(isJsonObject(properties) ? { properties } : {}),
  }
}

/** The whole message with which a worker introduces itself. The oldest orchestrators read `supported_tasks`. */
export function registration(settings: WorkerSettings, skills: readonly Skill[]): RegisterRequest {
  return {
    worker_id: settings.id,
    worker_type: settings.type,
    supported_skills: skills.map((skill) => skill.info),
    supported_tasks: skills.map((skill) => skill.name),
    skills_hash: skillsHash(settings, skills),
    ...settings.description,
  }
}

/** Changes with whatever a worker registers about its skills, so that the orchestrator can ask for all of it again. */
export function skillsHash(settings: WorkerSettings, skills: readonly Skill[]): string {
  const { capabilities } = settings.description
  const told: JsonObject = {
    skills: skills.map((skill) => infoJson(skill.info)),
    capabilities: capabilities?.cost_per_skill ?? {},
    extra: capabilities?.extra ?? {},
  }
  return createHash('sha256').update(canonicalMessage(told)).digest('hex')
}

/** The boundary: a skill's description is made of JSON only. */
function infoJson(info: SkillInfo): Json {
  return info as unknown as Json
}
