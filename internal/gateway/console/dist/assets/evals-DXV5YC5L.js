/* Licences of the libraries in this file: NOTICE.txt */
import{a,b,c,d,e,f}from"./chunk-W26X2HNC.js";import"./chunk-HZ7KSQTL.js";import"./chunk-UARFWQWL.js";import"./chunk-PJLAHBY7.js";import"./chunk-OOJM4CTU.js";export{e as NoResults,f as default,d as interval,c as nameOf,b as outcome,a as percent};
