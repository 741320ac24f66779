"""`headrace serve`: one database for many clients, over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import headrace as hr
from headrace.cli.errors import reported, script_of
from headrace.cli.run import RunnerChoice, Threads
from headrace.engine import Policy
from headrace.engine.views.frames import optional
from headrace.language.statements.formats import FILE_FORMATS
from headrace.runtime.delivery.kinds import FOLDERS
from headrace.runtime.driver.settings import SERVED_EPOCH_TIMEOUT
from headrace.runtime.tasks.heap import keep_freed_memory
from headrace.server.access import Door, hosts_of
from headrace.server.address import Address
from headrace.server.keys import FILE_NAME, KeyFile
from headrace.server.limits import RequestLimits
from headrace.server.logs import log_as_json
from headrace.server.session import Session


def serve(
    storage: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder of the store: started again, the server goes on.")
    ],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE.sql", help="Statements that are carried out first, without a policy."),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for a free one.")] = 7878,
    runner: Annotated[RunnerChoice, typer.Option(help="On Spark, or in this process.")] = RunnerChoice.SPARK,
    threads: Threads = None,
    retain_epochs: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Of how many epochs changes are kept.", show_default="all"),
    ] = None,
    keys: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file of keys.", show_default="keys.json in the store"),
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="The certificate for TLS.")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="Its private key.")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Serve the network without TLS, as behind a proxy.")
    ] = False,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name under which the server is called.")
    ] = None,
    allow_folder: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A folder whose files statements of clients may read."),
    ] = None,
    sink_folder: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A folder into which sinks that clients create may write."),
    ] = None,
    subscribers: Annotated[int, typer.Option(min=1, help="How many clients may wait for changes.")] = 10_000,
    max_request: Annotated[int, typer.Option(metavar="MB", min=1, help="Refuse larger requests.")] = 64,
    max_result: Annotated[int, typer.Option(metavar="MB", min=1, help="Refuse larger answers.")] = 256,
    seconds: Annotated[float, typer.Option(metavar="S", help="What statements and questions may take.")] = 30,
    epoch_timeout: Annotated[
        float | None,
        typer.Option(metavar="S", help="What an operator of a query may take in an epoch; 30 by default."),
    ] = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="How much state there may be, such as '2 GB'."),
    ] = None,
    processing_limit: Annotated[
        float | None,
        typer.Option(metavar="CORES", help="How much processor time queries may need, such as 1.5 cores."),
    ] = None,
) -> None:
    """Serve streams and queries over HTTP until SIGTERM or Ctrl-C."""
    script = None if file is None else script_of(file, None)
    with reported():
        serving = _serving()
    with reported(file):
        connections = serving.connection_limits()
        if subscribers > connections.subscribers:
            most = f"{connections.subscribers:,} clients may wait for changes, not {subscribers:,}"
            _say(f"{most}: the process may have no more files and connections open (ulimit -n)")
        limits = RequestLimits(
            request_bytes=max_request * 2**20,
            result_bytes=max_result * 2**20,
            seconds=seconds,
            subscribers=min(subscribers, connections.subscribers),
        )
        door = Door(KeyFile(keys or storage / FILE_NAME), hosts_of(host, allow_host or ()))
        address = Address(host, port, tls_cert, tls_key, insecure)
        address.check(has_keys=bool(door.keys.keys))
        keep_freed_memory()
        # Before anything is made: an address that is taken is refused at once.
        with (
            serving.listener(address) as bound,
            hr.connect(
                runner=runner.value,
                threads=threads,
                storage=storage,
                retain_epochs=retain_epochs,
                epoch_timeout=epoch_timeout,
                memory_limit=memory_limit,
                processing_limit=processing_limit,
            ) as db,
        ):
            db.served.limit_epochs(SERVED_EPOCH_TIMEOUT)
            if script is not None:
                db.execute(script.text, base=script.file.parent)
            policy = policy_of(allow_folder or (), sink_folder or ())
            log_as_json()
            db.served.start()
            session = Session(db, policy, storage.absolute(), limits)
            serving.serve(session, door, address, _listening, bound)


def policy_of(folders: Sequence[Path], sink_folders: Sequence[Path]) -> Policy:
    """What statements of administrators may reach.

    Args:
        folders: those whose files they may read.
        sink_folders: those into which their sinks may write.
    """
    return Policy.closed(
        folders=folders,
        formats=("push", *FILE_FORMATS) if folders else ("push",),
        may_change=True,
        sinks=FOLDERS if sink_folders else (),
        outputs=sink_folders,
    )


def _listening(url: str) -> None:
    _say(f"serving {url}")


def _say(text: str) -> None:
    typer.echo(f"headrace: {text}", err=True)


def _serving() -> Any:
    """The module that serves, loaded only here: the other commands do without its libraries."""
    for name in ("fastapi", "uvicorn", "prometheus_client"):
        optional(name, "server")
    return optional("headrace.server.serving", "server")
