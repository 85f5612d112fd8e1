import { watch } from 'node:fs'
import { rm, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { nativePath } from '../paths.ts'

/** File systems on which the changes of other machines send no events: NFS, SMB, CIFS, 9P, FUSE, VirtualBox, AFS, Ceph. */
const REMOTE = new Set([
  0x69_69, 0x51_7b, 0xfe_53_4d_42, 0xff_53_4d_42, 0x01_02_19_97, 0x65_73_55_46, 0x78_6f_42_56, 0x53_46_41_4f,
  0x00_c3_64_00,
])
const PROBE_MS = 1_000

/** Whether changes in a folder send events. On local disks that may be written to, it is tried; else the kind of disk decides. */
export async function sendsEvents(folder: string): Promise<boolean> {
  const { type } = await statfs(nativePath(folder))
  if (REMOTE.has(type)) return false
  if (typeof nativePath(folder) !== 'string') return true
  return tried(folder)
}

async function tried(folder: string): Promise<boolean> {
  // Hidden, so that it is no document.
  const probe = join(folder, `.impresario-probe-${process.pid}`)
  const controller = new AbortController()
  const heard = new Promise<boolean>((resolve) => {
    try {
      const watcher = watch(folder, { persistent: false, signal: controller.signal }, () => resolve(true))
      watcher.on('error', () => resolve(false))
    } catch {
      // No watches left: the watch that counts will say so.
      resolve(true)
    }
    setTimeout(() => resolve(false), PROBE_MS)
  })
  try {
    await writeFile(probe, '', { flag: 'w' })
  } catch {
    controller.abort()
    return true
  }
  const hasHeard = await heard
  controller.abort()
  await rm(probe, { force: true })
  return hasHeard
}
