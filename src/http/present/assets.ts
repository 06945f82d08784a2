import type { Image } from '../../contract/assets/image.ts';
import type { Volume } from '../../contract/assets/volume.ts';
import type { VolumeView } from '../../control/assets/manage-volumes.ts';
import type { ImageRecord } from '../../core/assets/image.ts';
import { imageReference } from '../../core/assets/image.ts';
import { isoTime, isoTimeOrNull } from '../../core/ports/clock.ts';

export function presentImage(record: ImageRecord): Image {
  return {
    image_id: record.id,
    workspace_id: record.workspaceId,
    name: record.name,
    digest: record.digest,
    reference: imageReference(record),
    kind: 'rootfs',
    architecture: record.architecture,
    size_bytes: record.sizeBytes,
    source: record.source,
    extension: record.extensionId,
    shared: record.shared,
    state: record.state === 'making' ? 'importing' : record.state,
    config: record.config,
    created_at: isoTime(record.createdAt),
    expires_at: isoTimeOrNull(record.state === 'making' ? null : record.expiresAt),
  };
}

export function presentVolume({ volume, mountedBy }: VolumeView): Volume {
  return {
    volume_id: volume.id,
    workspace_id: volume.workspaceId,
    name: volume.name,
    extension: volume.extensionId,
    size_mb: volume.sizeMb,
    state: volume.state,
    mounted_by: [...mountedBy],
    labels: volume.labels,
    created_at: isoTime(volume.createdAt),
  };
}
