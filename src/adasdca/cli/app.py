"""The commands; what they do is in files of their own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
import typer.core

import adasdca
from adasdca import plugins
from adasdca.cli.certify import certify
from adasdca.cli.compare import compare
from adasdca.cli.datasets import app as datasets_app
from adasdca.cli.fit import fit
from adasdca.cli.liblinear import train
from adasdca.cli.output import discard, print_error
from adasdca.cli.pack import pack
from adasdca.cli.path import path
from adasdca.cli.predict import predict
from adasdca.cli.reproduce import reproduce
from adasdca.cli.usage import (
    add_value,
    as_usage_error,
    os_message,
    set_options,
    suggest_model,
    suggest_option,
    usage_error,
)
from adasdca.duality.certificate import CertificateError
from adasdca.errors import InputError

CODES = """\b
Exit codes:
  0    done
  1    finished, but not to the accuracy asked for
  2    wrong usage or bad input
  3    a file or the network failed
  130  interrupted; what was reached is kept
"""


class Commands(typer.core.TyperGroup):
    """The group of all commands, which turns what they may raise into exit codes."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command of these words."""
        found = super().resolve_command(ctx, args)
        set_options(found[1])
        return found

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print_error("Interrupted.")
            raise typer.Exit(130) from None
        except typer.BadParameter as error:
            add_value(error)
            raise
        except InputError as error:
            raise as_usage_error(error) from error
        except CertificateError as error:
            raise usage_error(str(error), "DATA") from error
        except BrokenPipeError:  # the reader of stdout has had enough
            discard(sys.stdout)
            raise typer.Exit(0) from None
        except OSError as error:
            print_error(f"Error: {os_message(error)}")
            raise typer.Exit(3) from error
        except Exception as error:
            if type(error).__name__ == "NoSuchOption":
                suggest_option(error)
                raise
            if type(error).__name__ == "UsageError":
                suggest_model(error)
                raise
            where = plugins.place_in(error)
            if where is None:
                raise
            raise usage_error(f"{where}: {type(error).__name__}: {error}", "--plugin") from error


# Plain text: errors and help stay readable, and searchable, in logs and pipes.
app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    epilog=CODES,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"adasdca {adasdca.__version__}")
        raise typer.Exit


@app.callback()
def _adasdca(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Regularised linear models by adaptive dual coordinate ascent, with a certificate."""


#: Each command with the example that ends its help.
EXAMPLES: dict[Callable[..., None], str] = {
    fit: "adasdca fit mushrooms --loss logistic --tol 1e-6 --model mushrooms.model",
    predict: "adasdca predict mushrooms.model mushrooms --output labels.txt",
    certify: "adasdca certify mushrooms.model mushrooms",
    path: "adasdca path mushrooms --loss squared_hinge --points 5",
    compare: "adasdca compare mushrooms --loss logistic --max-time 1",
    pack: "adasdca pack train.svm train.packed",
    reproduce: "adasdca reproduce --quick --output reproduction",
}

for _command, _example in EXAMPLES.items():
    app.command(epilog=f"\b\nExample:\n  {_example}")(_command)

# LIBLINEAR's options, such as -w1 2, are taken apart by the command itself.
app.command(
    epilog="\b\nExample:\n  adasdca train -s 0 -c 0.5 heart_scale heart_scale.model",
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    add_help_option=True,
    short_help="LIBLINEAR's train, with a certificate.",
)(train)

app.add_typer(datasets_app, name="datasets")
