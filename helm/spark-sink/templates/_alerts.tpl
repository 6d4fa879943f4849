{{/*
The alerts, of this release's pods alone. Each has a section in docs/runbooks/spark-sink.md, by its name.
*/}}
{{- define "spark-sink.alerts" -}}
{{- $pods := printf "namespace=%q,pod=~%q" .Release.Namespace (printf "%s-.+" (include "spark-sink.fullname" .)) -}}
{{- $runbook := printf "%s/spark-sink.md" (.Values.prometheusRule.runbooks | trimSuffix "/") -}}
- alert: SinkDown
  expr: absent(cdc_sink_batches_total{ {{- $pods -}} })
  for: 10m
  labels: {severity: critical}
  annotations:
    summary: The sink does not answer
    runbook_url: {{ $runbook }}#sinkdown
- alert: SinkStalled
  expr: >-
    time() - cdc_sink_last_batch_timestamp_seconds{ {{- $pods -}} } > {{ .Values.prometheusRule.batchSeconds }}
    and cdc_sink_lag_records{ {{- $pods -}} } > 0
  labels: {severity: critical}
  annotations:
    summary: '{{ `No batch was applied for {{ $value | humanizeDuration }}, and events wait` }}'
    runbook_url: {{ $runbook }}#sinkstalled
- alert: SinkFallsBehind
  expr: >-
    cdc_sink_lag_records{ {{- $pods -}} } > 0
    and deriv(cdc_sink_lag_records{ {{- $pods -}} }[30m]) > 0
  for: 30m
  labels: {severity: warning}
  annotations:
    summary: '{{ `{{ $value | humanize }} records wait, and they become more` }}'
    runbook_url: {{ $runbook }}#sinkfallsbehind
- alert: SinkTablesParked
  expr: cdc_sink_parked_tables{ {{- $pods -}} } > 0
  for: 5m
  labels: {severity: warning}
  annotations:
    summary: '{{ `{{ $value }} tables are parked; their events wait` }}'
    runbook_url: {{ $runbook }}#sinktablesparked
- alert: SinkRowsUnaccounted
  expr: >-
    {{- include "spark-sink.grew" (dict "metric" "cdc_sink_statements_unaccounted_total" "pods" $pods "by" "table, note") | nindent 4 }}
  labels: {severity: warning}
  annotations:
    summary: '{{ `The table {{ $labels.table }} differs from its source, or may: {{ $labels.note }}` }}'
    runbook_url: {{ $runbook }}#sinkrowsunaccounted
- alert: SinkQuarantine
  expr: >-
    {{- include "spark-sink.grew" (dict "metric" "cdc_sink_quarantined_events_total" "pods" $pods "by" "reason") | nindent 4 }}
  labels: {severity: warning}
  annotations:
    summary: '{{ `Events went to quarantine: {{ $labels.reason }}` }}'
    runbook_url: {{ $runbook }}#sinkquarantine
- alert: SinkColumnsBeside
  expr: >-
    {{- include "spark-sink.grew" (dict "metric" "cdc_sink_columns_beside_total" "pods" $pods "by" "pod") | nindent 4 }}
  labels: {severity: info}
  annotations:
    summary: A column has a further version, as the type at the source went beyond it
    runbook_url: {{ $runbook }}#sinkcolumnsbeside
- alert: SinkMaintenanceFails
  expr: sum by (pod) (increase(cdc_sink_maintenance_failures_total{ {{- $pods -}} }[6h])) > 3
  labels: {severity: warning}
  annotations:
    summary: Files of tables are not tidied up
    runbook_url: {{ $runbook }}#sinkmaintenancefails
- alert: SinkCatalogRefuses
  expr: >-
    {{- include "spark-sink.grew" (dict "metric" "cdc_sink_registration_failures_total" "pods" $pods "by" "pod") | nindent 4 }}
  labels: {severity: warning}
  annotations:
    summary: The catalog did not take a table
    runbook_url: {{ $runbook }}#sinkcatalogrefuses
{{- end -}}
