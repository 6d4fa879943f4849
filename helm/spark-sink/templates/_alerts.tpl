{{/*
The alerts, for the pods of this release only. docs/runbooks/spark-sink.md has a section for each, with its name.
*/}}
{{- define "spark-sink.alerts" -}}
{{- $pods := printf "namespace=%q,pod=~%q" .Release.Namespace (printf "%s-.+" (include "spark-sink.fullname" .)) -}}
{{- $job := printf "namespace=%q,cronjob=%q" .Release.Namespace (include "spark-sink.fullname" .) -}}
{{- $runbook := printf "%s/spark-sink.md" (include "spark-sink.runbooks" .) -}}
- alert: SinkDown
  {{- if .Values.schedule }}
  # From kube-state-metrics. A CronJob without a successful run counts from its creation.
  expr: >-
    time() - (kube_cronjob_status_last_successful_time{ {{- $job -}} } or kube_cronjob_created{ {{- $job -}} })
    > {{ .Values.prometheusRule.batchSeconds }}
    or absent(kube_cronjob_created{ {{- $job -}} })
  {{- else }}
  expr: absent(cdc_sink_batches_total{ {{- $pods -}} })
  {{- end }}
  for: 10m
  labels: {severity: critical}
  annotations:
    summary: {{ .Values.schedule | empty | ternary "The sink does not respond" "No run of the sink has succeeded for too long" }}
    runbook_url: {{ $runbook }}#sinkdown
- alert: SinkStalled
  expr: >-
    time() - cdc_sink_last_batch_timestamp_seconds{ {{- $pods -}} } > {{ .Values.prometheusRule.batchSeconds }}
    and cdc_sink_lag_records{ {{- $pods -}} } > 0
  labels: {severity: critical}
  annotations:
    summary: '{{ `Events are waiting, but no batch was applied for {{ $value | humanizeDuration }}` }}'
    runbook_url: {{ $runbook }}#sinkstalled
- alert: SinkFallsBehind
  {{- if .Values.schedule }}
  # From kube-state-metrics. While a run is in progress, no other run starts, so the time of the next run passes.
  expr: time() - kube_cronjob_next_schedule_time{ {{- $job -}} } > 0
  for: 10m
  {{- else }}
  expr: >-
    cdc_sink_lag_records{ {{- $pods -}} } > 0
    and deriv(cdc_sink_lag_records{ {{- $pods -}} }[30m]) > 0
  for: 30m
  {{- end }}
  labels: {severity: warning}
  annotations:
    {{- if .Values.schedule }}
    summary: '{{ `A run takes longer than the schedule allows: the next one is overdue by {{ $value | humanizeDuration }}` }}'
    {{- else }}
    summary: '{{ `The backlog of {{ $value | humanize }} records keeps growing` }}'
    {{- end }}
    runbook_url: {{ $runbook }}#sinkfallsbehind
- alert: SinkTablesParked
  expr: max({{ include "spark-sink.latest" (dict "metric" "cdc_sink_parked_tables" "pods" $pods "root" .) }}) > 0
  for: 5m
  labels: {severity: warning}
  annotations:
    summary: '{{ `{{ $value }} tables are parked, and their events wait` }}'
    runbook_url: {{ $runbook }}#sinktablesparked
- alert: SinkRowsUnaccounted
  expr: >-
    {{- include "spark-sink.grew" (dict "metric" "cdc_sink_statements_unaccounted_total" "pods" $pods "by" "table, note" "root" .) | nindent 4 }}
  labels: {severity: warning}
  annotations:
    summary: '{{ `Table {{ $labels.table }} may differ from its source: {{ $labels.note }}` }}'
    runbook_url: {{ $runbook }}#sinkrowsunaccounted
- alert: SinkQuarantine
  expr: >-
    {{- include "spark-sink.grew" (dict "metric" "cdc_sink_quarantined_events_total" "pods" $pods "by" "reason" "root" .) | nindent 4 }}
  labels: {severity: warning}
  annotations:
    summary: '{{ `Events went to quarantine: {{ $labels.reason }}` }}'
    runbook_url: {{ $runbook }}#sinkquarantine
- alert: SinkColumnsBeside
  expr: >-
    {{- include "spark-sink.grew" (dict "metric" "cdc_sink_columns_beside_total" "pods" $pods "by" "" "root" .) | nindent 4 }}
  labels: {severity: info}
  annotations:
    summary: A source column outgrew its type, so the table has an additional column
    runbook_url: {{ $runbook }}#sinkcolumnsbeside
- alert: SinkMaintenanceFails
  {{- if .Values.schedule }}
  # Each run is a new pod, which counts from zero. One failure can be a conflict with another program, so two runs count.
  expr: >-
    count(max_over_time(cdc_sink_maintenance_failures_total{ {{- $pods -}} }[{{ int .Values.prometheusRule.batchSeconds }}s]) > 0) > 1
  {{- else }}
  expr: sum(increase(cdc_sink_maintenance_failures_total{ {{- $pods -}} }[6h])) > 3
  {{- end }}
  labels: {severity: warning}
  annotations:
    summary: Maintenance of table files fails
    runbook_url: {{ $runbook }}#sinkmaintenancefails
- alert: SinkTableDiffers
  expr: max by (table, against) ({{ include "spark-sink.latest" (dict "metric" "cdc_sink_verify_differing_rows" "pods" $pods "root" .) }}) > 0
  labels: {severity: critical}
  annotations:
    summary: '{{ `{{ $value }} rows of table {{ $labels.table }} differ from {{ $labels.against }}` }}'
    runbook_url: {{ $runbook }}#sinktablediffers
{{- if .Values.prometheusRule.verifySeconds }}
- alert: SinkNotVerified
  expr: >-
    time() - max by (table, against) ({{ include "spark-sink.latest" (dict "metric" "cdc_sink_last_verified_timestamp_seconds" "pods" $pods "root" .) }})
    > {{ .Values.prometheusRule.verifySeconds }}
  labels: {severity: warning}
  annotations:
    summary: '{{ `Table {{ $labels.table }} was last verified against {{ $labels.against }} {{ $value | humanizeDuration }} ago` }}'
    runbook_url: {{ $runbook }}#sinknotverified
{{- end }}
- alert: SinkCatalogRefuses
  expr: >-
    {{- include "spark-sink.grew" (dict "metric" "cdc_sink_registration_failures_total" "pods" $pods "by" "" "root" .) | nindent 4 }}
  labels: {severity: warning}
  annotations:
    summary: A table could not be registered in the catalog
    runbook_url: {{ $runbook }}#sinkcatalogrefuses
{{- end -}}
