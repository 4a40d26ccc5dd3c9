"""For now: features by hand."""

from toolgate.facade import Gate
from toolgate.feature import Feature, Page

LOCAL = (
    Feature(
        "files",
        "",
        routes="toolgate.features.files.routes:routes",
        pages=(Page("/undo", "", "toolgate.features.files.pages:add"),),
    ),
    Feature("programs", "", routes="toolgate.features.programs.routes:routes"),
    Feature(
        "servers",
        "",
        pages=(
            Page(
                "/servers",
                "Servers",
                "toolgate.features.servers.pages:add",
                "M3 4h14v5H3zM3 11h14v5H3zM6 6.500h.01M6 13.500h.01",
            ),
        ),
    ),
    Feature("jobs", "", routes="toolgate.features.jobs.routes:routes"),
)


def features_of(gate: Gate) -> tuple[Feature, ...]:
    return LOCAL
