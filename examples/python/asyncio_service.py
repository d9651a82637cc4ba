"""A service on asyncio that stores lines durably, and lets clients follow the lines.

    python asyncio_service.py lines.wal --port 7002

A client sends ``ADD some text``, and gets the record's LSN once the text is on stable storage.
Clients that wait at the same time share a sync. A client sends ``FOLLOW 0``, and gets all records
from LSN 0 on, and then each new record. To reconnect, a client sends the last LSN received.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal

from deedbook import Error
from deedbook.aio import AsyncWal

LINE_BYTES_MAX = 1 << 16


async def serve(path: str, port: int) -> None:
    """Run until SIGTERM or SIGINT."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    clients: set[asyncio.Task[None]] = set()

    async with AsyncWal.open(path, "a", durability="always") as wal:

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while line := await reader.readline():
                verb, _, rest = line.rstrip(b"\r\n").partition(b" ")
                if verb == b"ADD":
                    writer.write(b"%d\n" % await wal.append(rest))
                elif verb == b"FOLLOW" and rest.isdigit():
                    async for record in wal.follow(int(rest)):
                        writer.write(b"%d %s\n" % (record.next_lsn, record.payload))
                        await writer.drain()
                else:
                    writer.write(b"ERROR say ADD TEXT or FOLLOW LSN\n")
                await writer.drain()

        async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            clients.add(task)
            try:
                await answer(reader, writer)
            except (Error, ValueError) as error:  # an LSN of no record, a line too long
                writer.write(b"ERROR %s\n" % str(error).encode())
            except (ConnectionError, asyncio.CancelledError):
                pass  # the client went away, or the service ends
            finally:
                clients.discard(task)
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()

        server = await asyncio.start_server(client, "127.0.0.1", port, limit=LINE_BYTES_MAX)
        print(server.sockets[0].getsockname()[1], flush=True)
        await stop.wait()
        server.close()
        for task in clients:
            task.cancel()
        await asyncio.gather(*clients, return_exceptions=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("log", help="directory of the log; it is created")
    parser.add_argument("--port", type=int, default=7002, help="port; 0 for any")
    arguments = parser.parse_args()
    asyncio.run(serve(arguments.log, arguments.port))
