import { FieldReader, FieldWriter } from "./frame-fields.ts";
import { type ListedExec, protocolError, type SupervisorFrame } from "./frames.ts";
import { STREAM, SUPERVISOR_FRAME } from "./protocol.ts";

/** Raises CONTAINER_LOST on anything malformed. The data of an OUTPUT is a view of `body`. */
export function decodeSupervisorFrame(type: number, body: Buffer): SupervisorFrame {
  const fields = new FieldReader(body);
  const frame = readSupervisorFrame(type, fields);
  fields.end();
  return frame;
}

function readSupervisorFrame(type: number, fields: FieldReader): SupervisorFrame {
  switch (type) {
    case SUPERVISOR_FRAME.welcome:
      return { type: "welcome", version: fields.u16(), boot: fields.bigU64(), claimed: fields.u8() !== 0 };
    case SUPERVISOR_FRAME.pong:
      return { type: "pong", cookie: fields.u64() };
    case SUPERVISOR_FRAME.configured:
      return { type: "configured" };
    case SUPERVISOR_FRAME.started:
      return { type: "started", id: fields.id(), pid: fields.u32(), existing: fields.u8() !== 0 };
    case SUPERVISOR_FRAME.output:
      return {
        type: "output",
        id: fields.id(),
        stream: readStream(fields),
        offset: fields.u64(),
        data: fields.rest(),
      };
    case SUPERVISOR_FRAME.stdinAck:
      return { type: "stdinAck", id: fields.id(), offset: fields.u64(), closed: fields.u8() !== 0 };
    case SUPERVISOR_FRAME.end:
      return {
        type: "end",
        id: fields.id(),
        how: fields.u8(),
        code: fields.u32(),
        flags: fields.u8(),
        stdoutTotal: fields.u64(),
        stderrTotal: fields.u64(),
        cpuMs: fields.u64(),
        maxRssBytes: fields.u64(),
      };
    case SUPERVISOR_FRAME.error:
      return {
        type: "error",
        id: fields.str(),
        code: fields.str(),
        errno: fields.u32(),
        message: fields.str(),
      };
    case SUPERVISOR_FRAME.listed:
      return { type: "listed", execs: readListed(fields) };
    case SUPERVISOR_FRAME.detached:
      return { type: "detached", id: fields.id() };
    case SUPERVISOR_FRAME.forgotten:
      return { type: "forgotten", id: fields.id() };
    case SUPERVISOR_FRAME.ok:
      return { type: "ok", request: fields.u8(), id: fields.str() };
    default:
      throw protocolError(`frame type ${type}`);
  }
}

function readStream(fields: FieldReader): number {
  const stream = fields.u8();
  if (stream !== STREAM.stdout && stream !== STREAM.stderr) throw protocolError(`stream ${stream}`);
  return stream;
}

function readListed(fields: FieldReader): ListedExec[] {
  const count = fields.u32();
  const execs: ListedExec[] = [];
  for (let index = 0; index < count; index += 1) {
    execs.push({
      id: fields.id(),
      ended: fields.u8() === 2,
      stdoutBase: fields.u64(),
      stdoutTotal: fields.u64(),
      stderrBase: fields.u64(),
      stderrTotal: fields.u64(),
    });
  }
  return execs;
}

/** The other half, for supervisors written in this language. */
export function encodeSupervisorFrame(frame: SupervisorFrame): Buffer {
  const type = SUPERVISOR_FRAME[frame.type];
  switch (frame.type) {
    case "welcome":
      return new FieldWriter(type)
        .u16(frame.version)
        .u64(frame.boot)
        .u8(frame.claimed ? 1 : 0)
        .finish();
    case "pong":
      return new FieldWriter(type).u64(frame.cookie).finish();
    case "configured":
      return new FieldWriter(type).finish();
    case "started":
      return new FieldWriter(type)
        .str(frame.id)
        .u32(frame.pid)
        .u8(frame.existing ? 1 : 0)
        .finish();
    case "output":
      return new FieldWriter(type, 96 + frame.data.length)
        .str(frame.id)
        .u8(frame.stream)
        .u64(frame.offset)
        .bytes(frame.data)
        .finish();
    case "stdinAck":
      return new FieldWriter(type, 96)
        .str(frame.id)
        .u64(frame.offset)
        .u8(frame.closed ? 1 : 0)
        .finish();
    case "end":
      return new FieldWriter(type, 128)
        .str(frame.id)
        .u8(frame.how)
        .u32(frame.code)
        .u8(frame.flags)
        .u64(frame.stdoutTotal)
        .u64(frame.stderrTotal)
        .u64(frame.cpuMs)
        .u64(frame.maxRssBytes)
        .finish();
    case "error":
      return new FieldWriter(type, 128)
        .str(frame.id)
        .str(frame.code)
        .u32(frame.errno)
        .str(frame.message)
        .finish();
    case "listed": {
      const writer = new FieldWriter(type, 1024).u32(frame.execs.length);
      for (const exec of frame.execs) {
        writer
          .str(exec.id)
          .u8(exec.ended ? 2 : 1)
          .u64(exec.stdoutBase)
          .u64(exec.stdoutTotal)
          .u64(exec.stderrBase)
          .u64(exec.stderrTotal);
      }
      return writer.finish();
    }
    case "detached":
    case "forgotten":
      return new FieldWriter(type).str(frame.id).finish();
    case "ok":
      return new FieldWriter(type).u8(frame.request).str(frame.id).finish();
  }
}
