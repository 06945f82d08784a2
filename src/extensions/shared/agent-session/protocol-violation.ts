/** A message of the agent, which is not trusted, that breaks the protocol. The connection is given up. */
export class ProtocolViolation extends Error {
  override readonly name = 'ProtocolViolation';
}
