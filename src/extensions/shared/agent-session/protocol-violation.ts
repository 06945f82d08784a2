/** The agent, which is not trusted, sent something that it must not. The connection is given up. */
export class ProtocolViolation extends Error {
  override readonly name = 'ProtocolViolation';
}
