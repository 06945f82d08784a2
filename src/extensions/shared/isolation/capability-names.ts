/** Names by number, as in linux/capability.h. */
const NAMES = `
  chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap linux_immutable net_bind_service
  net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio sys_chroot sys_ptrace sys_pacct sys_admin
  sys_boot sys_nice sys_resource sys_time sys_tty_config mknod lease audit_write audit_control setfcap mac_override
  mac_admin syslog wake_alarm block_suspend audit_read perfmon bpf checkpoint_restore`
  .trim()
  .split(/\s+/);

/** Returns the capabilities in a mask as `/proc` writes it; one that is newer than this list appears by its number. */
export function capabilityNames(hex: string): string[] {
  const mask = /^[0-9a-f]+$/i.test(hex.trim()) ? BigInt(`0x${hex.trim()}`) : 0n;
  const names: string[] = [];
  for (let bit = 0; mask >> BigInt(bit) > 0n; bit++) {
    if ((mask >> BigInt(bit)) & 1n) names.push(NAMES[bit] ?? String(bit));
  }
  return names;
}
