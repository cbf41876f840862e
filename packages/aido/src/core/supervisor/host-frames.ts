import { FieldReader, FieldWriter } from "./frame-fields.ts";
import { type HostFrame, protocolError } from "./frames.ts";
import { HOST_FRAME, TOKEN_BYTES } from "./protocol.ts";

export function encodeHostFrame(frame: HostFrame): Buffer {
  const type = HOST_FRAME[frame.type];
  switch (frame.type) {
    case "hello":
      return new FieldWriter(type).u16(frame.version).bytes(frame.token).finish();
    case "ping":
      return new FieldWriter(type).u64(frame.cookie).finish();
    case "configure":
      return new FieldWriter(type)
        .u64(frame.deadlineMs)
        .u32(frame.uid)
        .u32(frame.gid)
        .str(frame.workdir)
        .finish();
    case "exec":
      return new FieldWriter(type, 512)
        .str(frame.id)
        .u8(frame.flags)
        .u32(frame.uid)
        .u32(frame.gid)
        .str(frame.cwd)
        .list(frame.argv)
        .list(frame.env)
        .u16(frame.rows)
        .u16(frame.cols)
        .u64(frame.timeoutMs)
        .u32(frame.graceMs)
        .u64(frame.outputLimit)
        .finish();
    case "attach":
      return new FieldWriter(type, 96).str(frame.id).u64(frame.stdoutOffset).u64(frame.stderrOffset).finish();
    case "ack":
      return new FieldWriter(type, 96).str(frame.id).u8(frame.stream).u64(frame.offset).finish();
    case "stdin":
      return Buffer.concat([encodeStdinHead(frame), frame.data]);
    case "stdinClose":
      return new FieldWriter(type, 96).str(frame.id).u64(frame.offset).finish();
    case "resize":
      return new FieldWriter(type, 96).str(frame.id).u16(frame.rows).u16(frame.cols).finish();
    case "signal":
      return new FieldWriter(type, 96)
        .str(frame.id)
        .u8(frame.signal)
        .u8(frame.scope)
        .u32(frame.graceMs)
        .finish();
    case "forget":
      return new FieldWriter(type).str(frame.id).finish();
    case "list":
      return new FieldWriter(type).finish();
    case "shutdown":
      return new FieldWriter(type).u32(frame.graceMs).finish();
  }
}

/** All of it but its data, which follow: who has them need not copy them. */
export function encodeStdinHead({ id, offset, data }: Extract<HostFrame, { type: "stdin" }>): Buffer {
  return new FieldWriter(HOST_FRAME.stdin, 96).str(id).u64(offset).finish(data.byteLength);
}

/** The other half, for supervisors written in this language. Raises CONTAINER_LOST on anything malformed. */
export function decodeHostFrame(type: number, body: Buffer): HostFrame {
  const fields = new FieldReader(body);
  const frame = readHostFrame(type, fields);
  fields.end();
  return frame;
}

function readHostFrame(type: number, fields: FieldReader): HostFrame {
  switch (type) {
    case HOST_FRAME.hello:
      return { type: "hello", version: fields.u16(), token: fields.take(TOKEN_BYTES) };
    case HOST_FRAME.ping:
      return { type: "ping", cookie: fields.u64() };
    case HOST_FRAME.configure:
      return {
        type: "configure",
        deadlineMs: fields.u64(),
        uid: fields.u32(),
        gid: fields.u32(),
        workdir: fields.str(),
      };
    case HOST_FRAME.exec:
      return {
        type: "exec",
        id: fields.id(),
        flags: fields.u8(),
        uid: fields.u32(),
        gid: fields.u32(),
        cwd: fields.str(),
        argv: fields.list(),
        env: fields.list(),
        rows: fields.u16(),
        cols: fields.u16(),
        timeoutMs: fields.u64(),
        graceMs: fields.u32(),
        outputLimit: fields.u64(),
      };
    case HOST_FRAME.attach:
      return { type: "attach", id: fields.id(), stdoutOffset: fields.u64(), stderrOffset: fields.u64() };
    case HOST_FRAME.ack:
      return { type: "ack", id: fields.id(), stream: fields.u8(), offset: fields.u64() };
    case HOST_FRAME.stdin:
      return { type: "stdin", id: fields.id(), offset: fields.u64(), data: fields.rest() };
    case HOST_FRAME.stdinClose:
      return { type: "stdinClose", id: fields.id(), offset: fields.u64() };
    case HOST_FRAME.resize:
      return { type: "resize", id: fields.id(), rows: fields.u16(), cols: fields.u16() };
    case HOST_FRAME.signal:
      return {
        type: "signal",
        id: fields.id(),
        signal: fields.u8(),
        scope: fields.u8(),
        graceMs: fields.u32(),
      };
    case HOST_FRAME.forget:
      return { type: "forget", id: fields.id() };
    case HOST_FRAME.list:
      return { type: "list" };
    case HOST_FRAME.shutdown:
      return { type: "shutdown", graceMs: fields.u32() };
    default:
      throw protocolError(`frame type ${type}`);
  }
}
