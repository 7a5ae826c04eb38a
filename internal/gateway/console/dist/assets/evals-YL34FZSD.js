/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-CLDW5QK7.js";import"./chunk-EOYKK7QD.js";import"./chunk-V4VZJUU4.js";import"./chunk-PDAZIZGF.js";import"./chunk-OOJM4CTU.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
